package fly_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/fly"
)

// TestStopTimeoutIsCutToTheMaximum launches and stops a machine with a grace of
// days; Fly accepts five minutes.
func TestStopTimeoutIsCutToTheMaximum(t *testing.T) {
	t.Parallel()
	timeouts := make(chan string, 2)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Config struct {
				StopConfig struct {
					Timeout string `json:"timeout"`
				} `json:"stop_config"`
			} `json:"config"`
			Timeout string `json:"timeout"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		timeouts <- body.Config.StopConfig.Timeout + body.Timeout
		_, _ = w.Write([]byte(`{"id":"m1","state":"created"}`))
	}))
	defer web.Close()
	p := setup(t, func(c *fly.Config) { c.BaseURL, c.Apps = web.URL, []string{"workers-1"} })
	long := spec("r-x")
	long.StopGrace = 72 * time.Hour
	m, err := p.launch(t, long)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.runner.Stop(t.Context(), m.Machine, long.StopGrace); err != nil {
		t.Fatal(err)
	}
	for _, call := range []string{"launch", "stop"} {
		if got, err := time.ParseDuration(<-timeouts); err != nil || got != 5*time.Minute {
			t.Errorf("%s: got a stop timeout of %s (%v), want 5m0s", call, got, err)
		}
	}
}
