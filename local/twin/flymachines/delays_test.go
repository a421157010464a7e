package flymachines_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sortie-dev/sortie/local/twin/flymachines"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// TestDelays creates and starts machines in virtual time.
func TestDelays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		began := make(chan time.Time, 2)
		cfg := config(t, flymachines.Functions{Clock: clock.System{}, Programs: map[string]flymachines.Function{
			"note": func(context.Context, flymachines.Program, io.Writer) int { began <- time.Now(); return 0 },
		}})
		cfg.Dir, cfg.Images, cfg.Delays = dir, map[string][]string{image: {"note"}}, flymachines.RealDelays()
		server, err := flymachines.Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		call := func(path, body string) (id string) {
			t.Helper()
			r := httptest.NewRequest(http.MethodPost, "/v1/apps/"+app+"/machines"+path, strings.NewReader(body))
			r.Header.Set("Authorization", "Bearer "+token)
			w := httptest.NewRecorder()
			server.ServeHTTP(w, r)
			var m struct{ ID string }
			if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil || w.Code != 200 {
				t.Fatalf("got %d %s, want a machine: %v", w.Code, w.Body, err)
			}
			return m.ID
		}
		input := fmt.Sprintf(`{"config":{"image":%q}`, image)

		at := time.Now()
		call("", input+"}")
		answered := time.Now()
		if took := answered.Sub(at); took < 1100*time.Millisecond || took > 2500*time.Millisecond {
			t.Errorf("a creation took %s, want 1.1s to 2.5s", took)
		}
		if took := (<-began).Sub(answered); took != 300*time.Millisecond {
			t.Errorf("the start after a creation took %s, want 300ms", took)
		}
		stopped := call("", input+`,"skip_launch":true}`)
		at = time.Now()
		call("/"+stopped, input+"}")
		if took := time.Since(at); took != 0 {
			t.Errorf("the answer to an update took %s, want none", took)
		}
		if took := (<-began).Sub(at); took != 300*time.Millisecond {
			t.Errorf("the start of a stopped machine took %s, want 300ms", took)
		}
		if err := server.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestDelaysAreChecked(t *testing.T) {
	t.Parallel()
	for _, d := range []flymachines.Delays{{CreateLeast: 2, CreateMost: 1}, {CreateLeast: -1}, {Start: -1}} {
		cfg := config(t, flymachines.Functions{Clock: clock.System{}})
		cfg.Delays = d
		if _, err := flymachines.Open(cfg); err == nil || !strings.Contains(err.Error(), "delays of") {
			t.Errorf("%+v: got %v, want an error", d, err)
		}
	}
}
