package fly_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/fly"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// TestPlacementChoosesAppsAndRegions launches on a full platform. Each region of the pool is
// tried in order, in an app of the pool.
func TestPlacementChoosesAppsAndRegions(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var tried []string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			_, _ = w.Write([]byte("[]"))
			return
		}
		var machine struct {
			Region string `json:"region"`
		}
		if err := json.NewDecoder(r.Body).Decode(&machine); err != nil {
			t.Error(err)
		}
		mu.Lock()
		tried = append(tried, strings.Split(r.URL.Path, "/")[3]+" "+machine.Region)
		mu.Unlock()
		http.Error(w, `{"error":"insufficient resources available to fulfill request"}`, http.StatusUnprocessableEntity)
	}))
	defer web.Close()
	p := setup(t, func(c *fly.Config) {
		c.BaseURL, c.Apps, c.Regions = web.URL, []string{"app-a", "app-b"}, []string{"iad"}
	})
	s := spec("r-x")
	s.Region = "fra"
	s.Placement = platform.Placement{Runner: platform.RunnerFly, Settings: &platform.FlySettings{Apps: []string{"app-b"}, Regions: []string{"ams", "fra", "lhr"}}}
	if _, err := p.launch(t, s); !fault.Is(err, fault.Capacity) {
		t.Fatalf("got %v, want Capacity", err)
	}
	if want := []string{"app-b fra", "app-b ams", "app-b lhr"}; !slices.Equal(tried, want) {
		t.Errorf("got creations in %v, want %v", tried, want)
	}
	s.Settings = &platform.FlySettings{Apps: []string{"other"}}
	if _, err := p.launch(t, s); !fault.Is(err, fault.LaunchRefused) || len(tried) != 3 {
		t.Errorf("app outside of the lists: got %v and %v, want LaunchRefused without a call", err, tried)
	}
}

// TestStartLimits returns Fly's documented limit for the pools that name the runner, and the
// configured one for all.
func TestStartLimits(t *testing.T) {
	t.Parallel()
	local := setup(t).runner
	limited := setup(t, func(c *fly.Config) { c.CreatesPerSecond, c.Burst = 2, 5 }).runner
	named := platform.Placement{Runner: platform.RunnerFly, Settings: &platform.FlySettings{Apps: []string{"workers-2"}}}
	for name, row := range map[string]struct {
		runner *fly.Runner
		where  platform.Placement
		apps   int
		burst  int
		rate   float64
	}{
		"local API":               {local, platform.Placement{}, 3, 0, 1},
		"local API, process":      {local, platform.Placement{Runner: platform.RunnerProcess}, 3, 0, 1},
		"local API, fly":          {local, named, 1, 3, 1},
		"configured limit":        {limited, platform.Placement{}, 3, 5, 2},
		"configured limit, named": {limited, named, 1, 5, 2},
	} {
		got := row.runner.StartLimits(row.where)
		if len(got) != row.apps || got[0].Burst != row.burst || (fleet.StartLimiter{Apps: got[:1]}).Rate() >= row.rate || (fleet.StartLimiter{Apps: got[:1]}).Rate() < row.rate*0.9 {
			t.Errorf("%s: got %+v, want %d apps with burst %d and just below %v a second", name, got, row.apps, row.burst, row.rate)
		}
	}
}
