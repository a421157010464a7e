package stack_test

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

const everySecond = "/v1/jobs/every-second"

// firings waits until the job has at least n runs and returns them, the oldest first.
func (c *child) firings(n int) []contract.Task {
	c.T.Helper()
	for {
		runs := outside.Get[contract.JobRuns](c.Client, everySecond+"/runs?limit=1000").Runs
		if len(runs) >= n {
			slices.Reverse(runs)
			return runs
		}
		if err := clock.Sleep(c.T.Context(), clock.System{}, 50*time.Millisecond); err != nil {
			c.T.Fatal(err)
		}
	}
}

// TestKilledStackFiresEachTimeOnce kills the stack while a job fires every second.
func TestKilledStackFiresEachTimeOnce(t *testing.T) {
	t.Parallel()
	given := served{Data: t.TempDir()}
	g := spawn(t, given)
	if answer := g.Call("PUT", everySecond, `{"image": "sortie-worker", "schedule": "@every 1s", "missed": "all"}`); answer.Status != 201 {
		t.Fatalf("got %d %s, want 201", answer.Status, answer.Body)
	}
	for n := 2; n <= 6; n += 2 {
		g.firings(n)
		g.kill(syscall.SIGKILL)
		g = spawn(t, given)
	}
	g.firings(10)
	if answer := g.Call("POST", everySecond+"/pause", ""); answer.Status != 200 {
		t.Fatalf("got %d %s, want 200", answer.Status, answer.Body)
	}
	runs := g.firings(10)
	for i, r := range runs {
		if want := runs[0].ScheduledAt.Add(time.Duration(i) * time.Second); !r.ScheduledAt.Equal(want) {
			t.Errorf("got run %d of %s, want one of %s", i, r.ScheduledAt, want)
		}
		if r.Trigger != "schedule" && r.Trigger != "catch_up" || r.LatenessSeconds == nil || *r.LatenessSeconds < 0 || !r.FiredAt.Equal(r.CreatedAt) {
			t.Errorf("got %+v, want a firing with its lateness", r)
		}
	}
}

// TestOutageStartsTheNewestTimeAlone stops and kills the process for several firing times of a
// schedule. Only the newest time starts a run. A skipped run counts the others.
func TestOutageStartsTheNewestTimeAlone(t *testing.T) {
	t.Parallel()
	given := served{Data: t.TempDir()}
	g := spawn(t, given)
	if answer := g.Call("PUT", everySecond, `{"image": "sortie-worker", "schedule": "@every 1s"}`); answer.Status != 201 {
		t.Fatalf("got %d %s, want 201", answer.Status, answer.Body)
	}
	since := outside.Get[contract.JobState](g.Client, everySecond).CreatedAt.UTC().Truncate(time.Second)
	const outage = 6 * time.Second
	rest := func() {
		if err := clock.Sleep(t.Context(), clock.System{}, outage); err != nil {
			t.Fatal(err)
		}
	}
	outages := []func(){
		func() {
			if err := g.process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			rest()
			if err := g.process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
		},
		func() { g.kill(syscall.SIGKILL); rest(); g = spawn(t, given) },
	}
	for _, outage := range outages {
		n := len(g.firings(1))
		n = len(g.firings(n + 2))
		outage()
		g.firings(n + 3)
	}
	if answer := g.Call("POST", everySecond+"/pause", ""); answer.Status != 200 {
		t.Fatalf("got %d %s, want 200", answer.Status, answer.Body)
	}
	next, long := since.Add(time.Second), 0
	for _, r := range g.firings(1) {
		count, until := 1, r.ScheduledAt
		if r.Missed != nil {
			count, until = r.Missed.Count, r.Missed.Until
			if r.Missed.Reason != "missed" || !r.Skipped {
				t.Errorf("got %+v, want skipped times that were missed", r)
			}
		}
		if count >= int(outage/time.Second)-2 {
			long++
		}
		if !r.ScheduledAt.Equal(next) || !until.Equal(next.Add(time.Duration(count-1)*time.Second)) {
			t.Errorf("got %d times from %s until %s, want the next one of %s", count, r.ScheduledAt, until, next)
		}
		next = until.Add(time.Second)
	}
	if long < len(outages) {
		t.Errorf("got %d records of the times of an outage, want %d", long, len(outages))
	}
}
