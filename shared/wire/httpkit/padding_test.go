package httpkit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

func TestPaddedResponse(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		every, takes time.Duration
		want         string
	}{
		"fast":       {10 * time.Second, 9 * time.Second, "1\n"},
		"slow":       {10 * time.Second, 25 * time.Second, "\n\n1\n"},
		"unlimited":  {0, time.Hour, "1\n"},
		"at the end": {10 * time.Second, 10*time.Second + time.Millisecond, "\n1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := httptest.NewRecorder()
				p := httpkit.NewPadded(w, clock.System{}, row.every)
				if err := clock.Sleep(t.Context(), clock.System{}, row.takes); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if err := p.Write(1); err != nil {
					t.Fatal(err)
				}
				if err := clock.Sleep(t.Context(), clock.System{}, time.Minute); err != nil { // nothing else happens
					t.Fatal(err)
				}
				if w.Code != http.StatusOK || w.Body.String() != row.want || w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Cache-Control") != "no-store" {
					t.Errorf("got %d with %q and %v, want 200 with %q as JSON", w.Code, w.Body, w.Header(), row.want)
				}
			})
		})
	}
}
