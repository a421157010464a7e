package fly_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/fly"
)

// TestMachinesAreSingleUse covers EC-3.7 and EC-3.8: a machine is destroyed when
// its program exits and is never restarted.
func TestMachinesAreSingleUse(t *testing.T) {
	t.Parallel()
	type creation struct {
		Path   string
		Config struct {
			AutoDestroy bool `json:"auto_destroy"`
			Restart     struct {
				Policy string `json:"policy"`
			} `json:"restart"`
		} `json:"config"`
	}
	created := make(chan creation, 1)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			c := creation{Path: r.URL.Path}
			if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
				t.Error(err)
			}
			created <- c
			http.Error(w, `{"error":"invalid config"}`, http.StatusUnprocessableEntity)
			return
		}
		_, _ = w.Write([]byte("[]"))
	}))
	defer web.Close()
	p := setup(t, func(c *fly.Config) { c.BaseURL, c.Apps = web.URL, []string{"workers-1"} })
	if m, err := p.launch(t, spec("r-x")); err == nil {
		t.Fatalf("got machine %+v, want the error of the refused creation", m)
	}
	got := <-created
	if want := "/v1/apps/workers-1/machines"; got.Path != want {
		t.Errorf("got path %s, want %s", got.Path, want)
	}
	if !got.Config.AutoDestroy || got.Config.Restart.Policy != "no" {
		t.Errorf("got auto_destroy %v and restart policy %q, want true and \"no\"", got.Config.AutoDestroy, got.Config.Restart.Policy)
	}
}
