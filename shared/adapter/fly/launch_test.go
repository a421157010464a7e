package fly_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/twin/flymachines/faults"
	"github.com/sortie-dev/sortie/shared/adapter/fly"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

func spec(name string) port.LaunchSpec {
	return port.LaunchSpec{
		Name: name, Image: image, Env: map[string]string{"RUNNER_DOES": "rest"},
		Owner: port.MachineOwner{Tenant: "acme", RunID: "run of " + name, Attempt: 1},
	}
}

// unknown is a machine that does not exist.
var unknown = port.Machine{Runner: "fly", App: "workers-1", ID: "0123456789abcd"}

func (p machinesAPI) launch(t *testing.T, s port.LaunchSpec) (port.MachineStatus, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return p.runner.Launch(ctx, s)
}

// live returns the number of live machines of the name.
func (p machinesAPI) live(t *testing.T, name string) int {
	t.Helper()
	count := 0
	if err := p.runner.List(t.Context(), func(m port.MachineStatus) bool {
		if m.Name == name {
			count++
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return count
}

func TestLaunchFindsItsMachineDespiteFaults(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]faults.Rule{
		"lost answer":                    {Kind: faults.LostAnswer, Times: 1},
		"bad gateway after the creation": {Kind: faults.BadGatewayAfter, Times: 1},
		"bad gateway without a creation": {Kind: faults.BadGateway, Times: 3},
		"creation after the timeout":     {Kind: faults.Slow, For: 300 * time.Millisecond, Times: 1},
		"unreachable host":               {Kind: faults.Unreachable},
		"slow start":                     {Kind: faults.StuckCreated, For: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t, func(c *fly.Config) { c.CreateTimeout, c.LookAgain = 200*time.Millisecond, 500*time.Millisecond })
			p.inject(t, rule)
			made, err := p.launch(t, spec("r-faulty"))
			for tries := 0; fault.Is(err, fault.Unavailable) && tries < 50; tries++ {
				made, err = p.launch(t, spec("r-faulty")) // Unavailable allows a retry, which adopts the machine
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, err := p.runner.Inspect(t.Context(), made.Machine); err != nil || got.Owner != spec("r-faulty").Owner {
				t.Errorf("got %+v, %v", got, err)
			}
			if count := p.live(t, "r-faulty"); count != 1 {
				t.Errorf("got %d machines, want 1", count)
			}
		})
	}
}

// TestMachineOfAnotherAttemptIsNotAdopted does not respond to a creation while the platform
// shows the machine of the previous attempt, and launches under that machine's name.
// Rule 5 of shared/README.md.
func TestMachineOfAnotherAttemptIsNotAdopted(t *testing.T) {
	t.Parallel()
	p := setup(t, func(c *fly.Config) { c.Apps, c.LookAgain = c.Apps[:1], time.Millisecond })
	before, after := spec("r-attempt-1"), spec("r-attempt-2")
	after.Owner = before.Owner
	after.Owner.Attempt = 2
	first, err := p.launch(t, before)
	if err != nil {
		t.Fatal(err)
	}
	stranger := before
	stranger.Owner.Attempt = 2
	if made, err := p.launch(t, stranger); !fault.Is(err, fault.LaunchRefused) {
		t.Errorf("name of the previous attempt: got %s, %v", made.ID, err)
	}
	p.inject(t, faults.Rule{Kind: faults.BadGateway, Name: after.Name})
	if made, err := p.launch(t, after); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %s, %v; the previous attempt has %s", made.ID, err, first.ID)
	}
	p.inject(t)
	if made, err := p.launch(t, after); err != nil || made.ID == first.ID || made.Owner != after.Owner {
		t.Errorf("got %+v, %v; the previous attempt has %s", made, err, first.ID)
	}
}

func TestInvisibleMachineIsUnknown(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.inject(t, faults.Rule{Kind: faults.LostAnswer, Name: "r-lost", Times: 1}, faults.Rule{Kind: faults.Invisible, For: time.Hour})
	for range 2 {
		_, err := p.launch(t, spec("r-lost"))
		if !fault.Is(err, fault.Unavailable) {
			t.Errorf("got error %v, want %s", err, fault.Unavailable)
		}
	}
	made, err := p.launch(t, spec("r-hidden"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.runner.Inspect(t.Context(), made.Machine); !errors.Is(err, port.ErrNotFound) {
		t.Errorf("lookup of an invisible machine: got %v", err)
	}
}

func TestWaitOutlastsInvisibility(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.inject(t, faults.Rule{Kind: faults.Invisible, For: 300 * time.Millisecond})
	made, err := p.launch(t, spec("r-hidden"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.runner.Wait(t.Context(), made.Machine, port.MachineRunning, 30*time.Second)
	if err != nil || got.Phase != port.MachineRunning {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestFullRegionFallsBackToTheNext(t *testing.T) {
	t.Parallel()
	p := setup(t, func(c *fly.Config) { c.Regions = []string{"ord", "iad", "fra"} })
	for _, variant := range faults.Variants() {
		p.inject(t, faults.Rule{Kind: faults.Capacity, Region: "ord", Variant: variant}, faults.Rule{Kind: faults.Capacity, Region: "lhr", Variant: variant})
		if made, err := p.launch(t, spec("r-"+variant)); err != nil || made.Region != "iad" {
			t.Errorf("%s: got %+v, %v; want region iad", variant, made, err)
		}
		s := spec("r-london-" + variant)
		s.Region = "lhr"
		if made, err := p.launch(t, s); err != nil || made.Region != "iad" {
			t.Errorf("%s: got %+v, %v; want region iad, the third", variant, made, err)
		}
	}
	p.inject(t, faults.Rule{Kind: faults.Capacity})
	if _, err := p.launch(t, spec("r-nowhere")); !fault.Is(err, fault.Capacity) {
		t.Errorf("got error %v", err)
	}
}

func TestExitReportsOOMAndLostExit(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.inject(t, faults.Rule{Kind: faults.OOM, Name: "r-oom"}, faults.Rule{Kind: faults.LostExit, Name: "r-lost"})
	for name, want := range map[string]*port.Exit{"r-oom": {Code: 137, Signal: 9, OOM: true}, "r-lost": nil} {
		s := spec(name)
		if want == nil {
			s.Env["RUNNER_DOES"] = "exit 0"
		}
		made, err := p.launch(t, s)
		if err != nil {
			t.Fatal(err)
		}
		gone, err := p.runner.Wait(t.Context(), made.Machine, port.MachineGone, 30*time.Second)
		if err != nil || gone.Phase != port.MachineGone {
			t.Fatalf("got %+v, %v", gone, err)
		}
		if gone.Exit != nil {
			gone.Exit.At = time.Time{}
		}
		if (gone.Exit == nil) != (want == nil) || (want != nil && *gone.Exit != *want) {
			t.Errorf("%s: got exit %+v, want %+v", name, gone.Exit, want)
		}
	}
}

func TestWrongTokenOrAppIsInternal(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*fly.Config)
		words  string
	}{
		"token":     {func(c *fly.Config) { c.Token = "another" }, "refuses the token"},
		"macaroons": {func(c *fly.Config) { c.Token = "FlyV1 fm2_bm90aGluZw==" }, "refuses the token"},
		"app":       {func(c *fly.Config) { c.Apps = []string{"nobodys"} }, "does not know the app"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t, test.change)
			_, err := p.launch(t, spec("r-x"))
			if !fault.Is(err, fault.LaunchRefused) || !strings.Contains(err.Error(), test.words) {
				t.Errorf("got error %v, want %s", err, test.words)
			}
			if strings.Contains(err.Error(), "fm2_") || strings.Contains(err.Error(), "another") {
				t.Errorf("got an error with the token: %v", err)
			}
			for _, app := range []string{"workers-1", "nobodys"} {
				id := port.Machine{Runner: "fly", App: app, ID: "0123456789abcd"}
				if _, err := p.runner.Inspect(t.Context(), id); name != "app" && !fault.Is(err, fault.Unavailable) {
					t.Errorf("lookup: got %v, want an error other than not found", err)
				}
			}
		})
	}
}

func TestLaunchesArePacedPerApp(t *testing.T) {
	t.Parallel()
	p := setup(t, func(c *fly.Config) {
		c.Apps = c.Apps[:1]
		c.Clock = clock.NewVirtual(time.Date(2025, 5, 1, 0, 0, 0, 0, time.UTC)) // a clock that does not advance
		c.CreatesPerSecond, c.Burst, c.MaxPause = 1, 3, time.Nanosecond
	})
	for n := range 5 {
		_, err := p.launch(t, spec(fmt.Sprintf("r-%d", n)))
		if n < 3 && err != nil {
			t.Errorf("burst: got %v, want success", err)
		}
		if n >= 3 && !fault.Is(err, fault.Throttled) {
			t.Errorf("after the burst: got %v, want %s", err, fault.Throttled)
		}
	}
}

func TestMachinesAreSpreadOverApps(t *testing.T) {
	t.Parallel()
	p := setup(t)
	var group sync.WaitGroup
	var mu sync.Mutex
	apps := map[string]int{}
	for n := range 24 {
		group.Go(func() {
			s := spec(fmt.Sprintf("r-%d-a1", n))
			s.Env["RUNNER_DOES"] = "exit 0"
			made, err := p.launch(t, s)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			apps[made.App]++
		})
	}
	group.Wait()
	if len(apps) != 3 {
		t.Errorf("got machines by app %v", apps)
	}
}

func TestMalformedAnswerIsUnavailable(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"not JSON":   func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>hello") },
		"no machine": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") },
		"a redirect": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) },
		"no answer":  func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := httptest.NewServer(handler)
			defer web.Close()
			p := setup(t, func(c *fly.Config) { c.BaseURL = web.URL + "/with/a/path" })
			if _, err := p.launch(t, spec("r-x")); !fault.Is(err, fault.Unavailable) {
				t.Errorf("got error %v, want %s", err, fault.Unavailable)
			}
		})
	}
}

func TestBaseURLKeepsItsPath(t *testing.T) {
	t.Parallel()
	paths := make(chan string, 1)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths <- r.URL.Path
		fmt.Fprint(w, "{}")
	}))
	defer web.Close()
	p := setup(t, func(c *fly.Config) { c.BaseURL = web.URL + "/fly/" })
	if _, err := p.runner.Inspect(t.Context(), unknown); err != nil {
		t.Log(err)
	}
	if got := <-paths; got != "/fly/v1/apps/workers-1/machines/0123456789abcd" {
		t.Errorf("got request path %s", got)
	}
}

func TestTokenRotation(t *testing.T) {
	t.Parallel()
	sent := make(chan string, 1)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent <- r.Header.Get("Authorization")
		fmt.Fprint(w, "{}")
	}))
	defer web.Close()
	token, fails := "first", error(nil)
	p := setup(t, func(c *fly.Config) {
		c.BaseURL, c.Token = web.URL, ""
		c.CurrentToken = func(context.Context) (string, error) { return token, fails }
	})
	for _, token = range []string{"first", "FlyV1 fm2_c2Vjb25k"} {
		if _, err := p.runner.Inspect(t.Context(), unknown); err != nil {
			t.Log(err)
		}
		if got := <-sent; !strings.HasSuffix(got, strings.TrimPrefix(token, "FlyV1 ")) {
			t.Errorf("got request with %q, want the token %q", got, token)
		}
	}
	fails = errors.New("no secret")
	if _, err := p.runner.Inspect(t.Context(), unknown); !fault.Is(err, fault.Unavailable) {
		t.Errorf("without a token: got %v", err)
	}
}

func TestConfigNamesAllProblems(t *testing.T) {
	t.Parallel()
	_, err := fly.New(fly.Config{BaseURL: "ftp://x", CreatesPerSecond: -1})
	for _, want := range []string{"an app", "the token", "the clock", "the logger", "the cluster", "a negative pace", "the base URL"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q in it", err, want)
		}
	}
}

// TestCallsOfALaunchAreCounted launches with the context of a run.
func TestCallsOfALaunchAreCounted(t *testing.T) {
	t.Parallel()
	p := setup(t)
	var calls port.Calls
	if _, err := p.runner.Launch(port.WithCalls(t.Context(), &calls), spec("counted")); err != nil {
		t.Fatal(err)
	}
	if got := calls.Take()["fly"]; got < 1 {
		t.Errorf("got %d calls of a launch, want at least one", got)
	}
}
