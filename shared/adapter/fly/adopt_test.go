package fly_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/fly"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// listed is a machine in the response of a list.
type listed struct {
	id, state, createdAt, attempt string
}

// lostCreations serves an app that never responds to creations. Like Fly, it lists destroyed
// machines only on request.
func lostCreations(machines []listed) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			panic(http.ErrAbortHandler)
		}
		found := []any{}
		for _, m := range machines {
			if m.state == "destroyed" && r.URL.Query().Get("include_deleted") != "true" {
				continue
			}
			found = append(found, map[string]any{
				"id": m.id, "name": "r-lost", "state": m.state, "created_at": m.createdAt,
				"config": map[string]any{"metadata": map[string]string{
					"orchestrator": "test", "tenant": "acme", "run_id": "run of r-lost", "attempt": m.attempt,
				}},
			})
		}
		_ = json.NewEncoder(w).Encode(found)
	}
}

// TestLostCreationAdoptsTheAttemptsMachine never responds to creations. The machine of the
// attempt is adopted even if it has ended, so that its program does not run twice.
func TestLostCreationAdoptsTheAttemptsMachine(t *testing.T) {
	t.Parallel()
	const early, late = "2026-03-01T08:00:00Z", "2026-03-01T08:00:05Z"
	for name, c := range map[string]struct {
		machines []listed
		want     string // empty: Unavailable
	}{
		"destroyed already":            {[]listed{{"m1", "destroyed", early, "1"}}, "m1"},
		"a live one before others":     {[]listed{{"m1", "destroyed", late, "1"}, {"m2", "started", early, "1"}, {"m3", "destroyed", late, "1"}}, "m2"},
		"the newest live one":          {[]listed{{"m1", "started", early, "1"}, {"m2", "started", late, "1"}}, "m2"},
		"the newest live one is first": {[]listed{{"m2", "started", late, "1"}, {"m1", "started", early, "1"}}, "m2"},
		"of another attempt":           {[]listed{{"m1", "started", early, "2"}}, ""},
		"none":                         {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := httptest.NewServer(lostCreations(c.machines))
			defer web.Close()
			p := setup(t, func(c *fly.Config) { c.BaseURL = web.URL })
			made, err := p.launch(t, spec("r-lost"))
			if c.want == "" {
				if !fault.Is(err, fault.Unavailable) {
					t.Errorf("got %s, %v; want Unavailable", made.ID, err)
				}
				return
			}
			if err != nil || !strings.HasSuffix(made.ID, c.want) {
				t.Errorf("got %s, %v; want %s", made.ID, err, c.want)
			}
		})
	}
}
