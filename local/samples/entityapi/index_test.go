package entityapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/samples/cid"
	"github.com/sortie-dev/sortie/local/samples/entityapi"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// many is a source of n entities that counts the computations of entities.
type many struct {
	n        int
	computed *atomic.Int64
}

func (m many) Len() int        { return m.n }
func (m many) Roots() []string { return []string{fmt.Sprintf("%026d", 1)} }
func (m many) Index(pi string) (int, bool) {
	var i int
	_, err := fmt.Sscanf(pi, "%d", &i)
	return i - 1, err == nil && i <= m.n
}

func (m many) Entity(i int) entityapi.Entity {
	m.computed.Add(1)
	return entityapi.Entity{
		PI: fmt.Sprintf("%026d", i+1), Versions: 1,
		Components: []entityapi.Component{entityapi.NewComponent("a", body(fmt.Sprint("a", i))), entityapi.NewComponent("b", body(fmt.Sprint("b", i)))},
	}
}

func TestReadingInOrderBuildsNoIndex(t *testing.T) {
	t.Parallel()
	m := many{n: 2200, computed: new(atomic.Int64)}
	h := entityapi.Handler(m, clock.NewVirtual(time.Unix(0, 0)))
	get := func(path, want string) {
		t.Helper()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != http.StatusOK || want != "" && w.Body.String() != want {
			t.Fatalf("%s: %d %q", path, w.Code, w.Body)
		}
	}
	cat := func(text string) { t.Helper(); get("/cat/"+string(cid.Raw([]byte(text))), text) }
	for i := range m.n {
		get(fmt.Sprintf("/entities/%026d", i+1), "")
		cat(fmt.Sprint("a", i))
		cat(fmt.Sprint("b", i))
	}
	if got := m.computed.Load(); got != int64(3*m.n) {
		t.Errorf("got %d computed entities for %d answers", got, 3*m.n)
	}
	cat("a0") // not among the latest any more, so the whole collection is read once
	cat("b1")
	if got := m.computed.Load(); got != int64(4*m.n+2) {
		t.Errorf("got %d computed entities in all", got)
	}
}
