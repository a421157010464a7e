package flymachines_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/superfly/fly-go"
	"github.com/superfly/fly-go/flaps"

	"github.com/sortie-dev/sortie/local/twin/flymachines"
	"github.com/sortie-dev/sortie/local/twin/flymachines/faults"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// withFaults opens a server with these faults.
func withFaults(t *testing.T, rules ...faults.Rule) *machines {
	t.Helper()
	return setup(t, func(c *flymachines.Config) { c.Faults.Rules = rules })
}

// withVirtualClock opens a server whose programs are functions and whose clock
// the test advances.
func withVirtualClock(t *testing.T, plan faults.Plan) (*machines, *clock.Virtual) {
	t.Helper()
	now := clock.NewVirtual(time.Date(2025, 5, 1, 12, 0, 0, 0, time.UTC))
	m := setup(t, func(c *flymachines.Config) {
		c.Clock, c.Faults = now, plan
		c.Images = map[string][]string{image: {"rest"}}
		c.Starter = flymachines.Functions{Clock: now, Programs: map[string]flymachines.Function{
			"rest": func(ctx context.Context, _ flymachines.Program, _ io.Writer) int { <-ctx.Done(); return 0 },
		}}
	})
	return m, now
}

// advance moves the clock when a timer waits for it.
func advance(t *testing.T, now *clock.Virtual, d time.Duration) {
	t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for range 100_000 {
		if _, waiting := now.Next(); waiting {
			now.Advance(d)
			return
		}
		<-look.C
	}
	t.Fatal("no timer waits for the clock")
}

func TestLostAnswerLeavesMachine(t *testing.T) {
	t.Parallel()
	m := withFaults(t, faults.Rule{Kind: faults.LostAnswer, Times: 1})
	_, err := m.client.Launch(t.Context(), app, m.input("lost", forever))
	if err == nil || !strings.Contains(err.Error(), "EOF") {
		t.Fatalf("got %v, want a closed connection", err)
	}
	if got := m.list("metadata.run_id=lost&include_deleted=true"); !slices.Equal(got, []string{"lost"}) {
		t.Errorf("list: got %v", got)
	}
	_, err = m.client.Launch(t.Context(), app, m.input("lost", forever))
	refused(t, err, http.StatusConflict, "already_exists")
}

func TestClientRetriesBadGateway(t *testing.T) {
	t.Parallel()
	m := withFaults(t, faults.Rule{Kind: faults.BadGateway, Name: "three", Times: 3}, faults.Rule{Kind: faults.BadGateway, Name: "many"})
	if _, err := m.client.Launch(t.Context(), app, m.input("three", "true")); err != nil {
		t.Errorf("after three attempts: got %v", err)
	}
	_, err := m.client.Launch(t.Context(), app, m.input("many", "true"))
	refused(t, err, http.StatusBadGateway, "")
	if got := m.list("include_deleted=true"); !slices.Equal(got, []string{"three"}) {
		t.Errorf("list: got %v", got)
	}
}

func TestBadGatewayAfterCreateConflictsWithItself(t *testing.T) {
	t.Parallel()
	m := withFaults(t, faults.Rule{Kind: faults.BadGatewayAfter, Times: 1})
	_, err := m.client.Launch(t.Context(), app, m.input("twice", forever))
	refused(t, err, http.StatusConflict, "already_exists")
}

func TestCapacityErrors(t *testing.T) {
	t.Parallel()
	want := map[string]struct {
		status int
		text   string
	}{
		"memory":       {409, "aborted: could not reserve resource for machine: insufficient memory available"},
		"cpu":          {409, "insufficient CPUs available"},
		"none":         {409, "aborted: no capacity"},
		"insufficient": {422, ""},
		"volume":       {412, "insufficient resources to create new machine with existing volume"},
		"quota":        {403, "please consider other regions"},
		"region":       {400, "no capacity"},
	}
	var rules []faults.Rule
	for _, variant := range faults.Variants() {
		rules = append(rules, faults.Rule{Kind: faults.Capacity, Name: variant, Variant: variant, Region: "ord"})
	}
	m := withFaults(t, rules...)
	for _, variant := range faults.Variants() {
		in := m.input(variant, "true")
		_, err := m.client.Launch(t.Context(), app, in)
		refused(t, err, want[variant].status, want[variant].text)
		if code := flaps.GetErrorStatusCode(err); variant == "insufficient" && *code != "insufficient_capacity" {
			t.Errorf("status %q", *code)
		}
		in.Region = "fra"
		if _, err := m.client.Launch(t.Context(), app, in); err != nil {
			t.Errorf("in another region: %v", err)
		}
	}
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	m, now := withVirtualClock(t, faults.Plan{RealLimits: true})
	launch := func(app string, n int) error {
		_, err := m.client.Launch(t.Context(), app, m.input(fmt.Sprint("m", n), ""))
		return err
	}
	for n := range 3 {
		if err := launch(app, n); err != nil {
			t.Fatalf("request within the burst: got %v", err)
		}
	}
	refused(t, launch(app, 3), http.StatusTooManyRequests, "resource_exhausted: rate limit exceeded")
	if err := launch("other", 3); err != nil {
		t.Errorf("another app: %v", err)
	}
	now.Advance(time.Second)
	if err := launch(app, 4); err != nil {
		t.Errorf("a second later: %v", err)
	}
	refused(t, launch(app, 5), http.StatusTooManyRequests, "")
	found, err := m.client.List(t.Context(), app, "")
	if err != nil || len(found) != 4 {
		t.Fatalf("list has a rate limit of its own: got %d, %v", len(found), err)
	}
	for n := range 11 {
		_, err := m.client.Get(t.Context(), app, found[0].ID)
		if (err != nil) != (n == 10) {
			t.Errorf("get number %d: %v", n, err)
		}
	}
}

func TestThrottleOneMachine(t *testing.T) {
	t.Parallel()
	m := withFaults(t, faults.Rule{Kind: faults.Throttle, Metadata: map[string]string{"run_id": "slow-down"}, Times: 2})
	for n := range 3 {
		_, err := m.client.Launch(t.Context(), app, m.input("slow-down", "true"))
		if n < 2 {
			refused(t, err, http.StatusTooManyRequests, "rate limit exceeded")
		} else if err != nil {
			t.Errorf("the third: %v", err)
		}
	}
	if _, err := m.client.Launch(t.Context(), app, m.input("other", "true")); err != nil {
		t.Errorf("another run: %v", err)
	}
}

func TestInvisibleMachineAppearsLater(t *testing.T) {
	t.Parallel()
	m, now := withVirtualClock(t, faults.Plan{Rules: []faults.Rule{{Kind: faults.Invisible, For: time.Minute}}})
	made := m.launch(m.input("hidden", ""))
	_, err := m.client.Get(t.Context(), app, made.ID)
	refused(t, err, http.StatusNotFound, "machine not found")
	err = m.client.Wait(t.Context(), app, made.ID)
	refused(t, err, http.StatusNotFound, "machine not found")
	if got := m.list("include_deleted=true"); len(got) != 0 {
		t.Errorf("list: got %v", got)
	}
	_, err = m.client.Launch(t.Context(), app, m.input("hidden", ""))
	refused(t, err, http.StatusConflict, made.ID)
	now.Advance(time.Minute)
	if got := m.get(made.ID); got.Name != "hidden" {
		t.Errorf("got %+v", got)
	}
}

func TestSlowCreateSurvivesClient(t *testing.T) {
	t.Parallel()
	m, now := withVirtualClock(t, faults.Plan{Rules: []faults.Rule{{Kind: faults.Slow, For: time.Minute}}})
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := m.client.Launch(ctx, app, m.input("slow", ""))
		failed <- err
	}()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for _, waiting := now.Next(); !waiting; _, waiting = now.Next() {
		<-look.C
	}
	cancel()
	if err := <-failed; err == nil {
		t.Fatal("launch was answered, want a closed connection")
	}
	now.Advance(time.Minute)
	for len(m.list("")) == 0 {
		<-look.C
	}
}

func TestStuckMachines(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		kind   faults.Kind
		states []string // during the fault
	}{
		{faults.StuckCreated, []string{"created"}},
		{faults.StuckStarting, []string{"starting"}},
	} {
		t.Run(string(test.kind), func(t *testing.T) {
			t.Parallel()
			m, now := withVirtualClock(t, faults.Plan{Rules: []faults.Rule{
				{Kind: test.kind, Name: "for-ever"}, {Kind: test.kind, Name: "a-while", For: time.Minute},
			}})
			stuck, late := m.launch(m.input("for-ever", "")), m.launch(m.input("a-while", ""))
			advance(t, now, time.Minute)
			m.wait(late.ID, "started")
			if got := m.get(stuck.ID); !slices.Contains(append(test.states, "created"), got.State) {
				t.Errorf("stuck machine: got state %s", got.State)
			}
			_, err := m.client.Start(t.Context(), app, stuck.ID, "")
			refused(t, err, http.StatusPreconditionFailed, "failed_precondition: unable to start machine from current state")
			if err := m.client.Destroy(t.Context(), app, fly.RemoveMachineInput{ID: stuck.ID, Kill: true}, ""); err != nil {
				t.Fatal(err)
			}
			m.wait(stuck.ID, "destroyed")
			if e := m.get(stuck.ID).GetLatestEventOfType("exit"); e != nil {
				t.Errorf("machine that never ran: got exit event %+v, want no event", e)
			}
		})
	}
	t.Run(string(faults.StuckDestroying), func(t *testing.T) {
		t.Parallel()
		m, now := withVirtualClock(t, faults.Plan{Rules: []faults.Rule{{Kind: faults.StuckDestroying, For: time.Hour}}})
		made := m.launch(m.input("slow-end", ""))
		m.wait(made.ID, "started")
		if err := m.client.Destroy(t.Context(), app, fly.RemoveMachineInput{ID: made.ID, Kill: true}, ""); err != nil {
			t.Fatal(err)
		}
		if got := m.get(made.ID).State; got != "destroying" {
			t.Errorf("state %s", got)
		}
		_, err := m.client.Launch(t.Context(), app, m.input("slow-end", ""))
		refused(t, err, http.StatusConflict, made.ID)
		advance(t, now, time.Hour)
		m.wait(made.ID, "destroyed")
	})
}

func TestOOMKill(t *testing.T) {
	t.Parallel()
	m := withFaults(t, faults.Rule{Kind: faults.OOM, Env: map[string]string{"TASK_ID": "hungry"}})
	in := m.input("", "sleep 600")
	in.Config.Env["TASK_ID"] = "hungry"
	if exit := m.exit(m.launch(in).ID); exit.ExitCode != 137 || !exit.OOMKilled || exit.RequestedStop {
		t.Errorf("exit = %+v", exit)
	}
}

func TestLostExit(t *testing.T) {
	t.Parallel()
	m := withFaults(t, faults.Rule{Kind: faults.LostExit, App: app})
	made := m.launch(m.input("", "exit 3"))
	m.wait(made.ID, "destroyed")
	if got := m.get(made.ID); got.GetLatestEventOfType("exit") != nil {
		t.Errorf("events: %s", events(got))
	}
}

func TestUnreachableHostHidesConfig(t *testing.T) {
	t.Parallel()
	m := withFaults(t, faults.Rule{Kind: faults.Unreachable})
	got := m.get(m.launch(m.input("far", forever)).ID)
	if got.HostStatus != fly.HostStatusUnreachable || got.Config != nil || got.GetMetadataByKey("run_id") != "far" {
		t.Errorf("got %+v", got)
	}
}

func TestFaultsAPI(t *testing.T) {
	t.Parallel()
	m := setup(t)
	auth := "Bearer " + token
	status, body := m.call("PUT", "/_local/faults", auth, faults.Plan{Rules: []faults.Rule{{Kind: "boom"}}})
	if status != http.StatusBadRequest || !strings.Contains(body["error"].(string), `kind "boom" is unknown`) {
		t.Errorf("invalid plan: got %d %v", status, body)
	}
	if status, body = m.call("PUT", "/_local/faults", auth, faults.Plan{Rules: []faults.Rule{{Kind: faults.Throttle}}}); status != http.StatusOK {
		t.Errorf("valid plan: got %d %v", status, body)
	}
	_, err := m.client.Launch(t.Context(), app, m.input("", "true"))
	refused(t, err, http.StatusTooManyRequests, "")
	if status, body = m.call("GET", "/_local/faults", auth, nil); status != http.StatusOK || body["rules"] == nil {
		t.Errorf("stored plan: got %d %v", status, body)
	}
	if status, _ = m.call("DELETE", "/_local/faults", auth, nil); status != http.StatusOK {
		t.Errorf("deleted plan: got %d", status)
	}
	m.launch(m.input("", "true"))
}
