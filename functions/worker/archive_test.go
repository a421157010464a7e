package worker

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/sortie-dev/sortie/functions/worker/record"
)

// archive is a fake entity API. Entities and answers are set before the first request.
type archive struct {
	t        *testing.T
	url      string
	entities map[string]map[string]any
	blocks   map[string][]byte
	// answers replaces the response to a path. n counts the requests from 1.
	answers map[string]func(w http.ResponseWriter, r *http.Request, n int)

	mu    sync.Mutex
	asked map[string]int
}

func newArchive(t *testing.T) *archive {
	t.Helper()
	a := &archive{
		t: t, entities: map[string]map[string]any{}, blocks: map[string][]byte{}, asked: map[string]int{},
		answers: map[string]func(http.ResponseWriter, *http.Request, int){},
	}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	a.url = server.URL
	return a
}

// testPI returns the n-th PI.
func testPI(n int) string { return fmt.Sprintf("01K9XVBAQZF9EHDRXGBE%06d", n) }

func mustPI(t *testing.T, text string) record.PI {
	t.Helper()
	pi, err := record.ParsePI(text)
	if err != nil {
		t.Fatal(err)
	}
	return pi
}

// put stores bytes and returns their CID.
func (a *archive) put(body []byte) string {
	sum := sha256.Sum256(body)
	raw := append([]byte{0x01, 0x55, 0x12, 0x20}, sum[:]...)
	encoding := base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
	cid := "b" + encoding.EncodeToString(raw)
	a.blocks[cid] = body
	return cid
}

// add adds entity n with components and children. A component is encoded as JSON unless it is
// bytes.
func (a *archive) add(n int, components map[string]any, children ...int) map[string]any {
	a.t.Helper()
	cids := map[string]string{}
	for name, content := range components {
		body, ok := content.([]byte)
		if !ok {
			var err error
			if body, err = json.Marshal(content); err != nil {
				a.t.Fatal(err)
			}
		}
		cids[name] = a.put(body)
	}
	entity := map[string]any{
		"pi": testPI(n), "ver": 1, "ts": "2025-11-13T05:34:54.719Z", "components": cids,
		"manifest_cid": fmt.Sprintf("bafyreitest%06d", n),
	}
	if len(children) > 0 {
		pis := make([]string, len(children))
		for i, child := range children {
			pis[i] = testPI(child)
		}
		entity["children_pi"] = pis
	}
	a.entities[testPI(n)] = entity
	return entity
}

// pinax returns a valid record.
func pinax(title string) map[string]any {
	return map[string]any{"pinax.json": map[string]any{
		"id": "local-" + title, "title": title, "type": "Text", "creator": "Doe, Jane", "institution": "Test Library",
		"created": "1971-10-21", "access_url": "PLACEHOLDER",
	}}
}

func (a *archive) cid(n int, component string) string {
	cid, ok := a.entities[testPI(n)]["components"].(map[string]string)[component]
	if !ok {
		a.t.Fatalf("entity %d: got no %s", n, component)
	}
	return cid
}

func (a *archive) count(path string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked[path]
}

func (a *archive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.asked[r.URL.Path]++
	n := a.asked[r.URL.Path]
	a.mu.Unlock()
	if answer := a.answers[r.URL.Path]; answer != nil {
		answer(w, r, n)
		return
	}
	a.serve(w, r)
}

func (a *archive) serve(w http.ResponseWriter, r *http.Request) {
	if pi, ok := strings.CutPrefix(r.URL.Path, "/entities/"); ok && a.entities[pi] != nil {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(a.entities[pi])
		return
	}
	if cid, ok := strings.CutPrefix(r.URL.Path, "/cat/"); ok && a.blocks[cid] != nil {
		_, _ = w.Write(a.blocks[cid])
		return
	}
	w.WriteHeader(http.StatusNotFound)
	_, _ = w.Write([]byte(`{"error":"NOT_FOUND","message":"no such thing"}`))
}
