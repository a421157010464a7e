package runs_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/shared/app/capacity"
	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// refuseStart makes the platform refuse the next start with a message, and ends the run.
func (h *fixture) refuseStart(code fault.Code, message string) {
	h.Helper()
	h.runner.during = func(m *machine) error {
		m.exit(0)
		f := fault.New(code, "%s", message)
		f.Retryable = false
		return f
	}
	h.wantState(h.post(), run.Failed)
}

// TestErrorsOfAPlatformAreGrouped refuses starts with messages that differ in ids and times.
func TestErrorsOfAPlatformAreGrouped(t *testing.T) {
	t.Parallel()
	h := setup(t)
	if got := h.health(); len(got.Errors) != 0 {
		t.Errorf("got errors %+v of a new pool, want none", got.Errors)
	}
	begin := h.clock.now
	for i := range 3 {
		h.advance(time.Minute)
		h.refuseStart(fault.Capacity, fmt.Sprintf("no room for 4d891a02c36e7%d at 2026-01-0%dT00:00:00Z, want %d CPUs fewer", i, i+1, i))
	}
	h.advance(time.Minute)
	h.refuseStart(fault.Image, "cannot pull https://ann:s3cret@registry.example/worker?token=abcdefgh")
	h.service = h.system(wiring{}) // another process
	h.advance(time.Minute)
	h.refuseStart(fault.Capacity, "no room for 0123456789abcd at 2026-02-01T00:00:00Z, want 9 CPUs fewer")
	got := h.health().Errors
	if len(got) != 2 || got[0].Code != fault.Capacity || got[1].Code != fault.Image {
		t.Fatalf("got %+v, want one group of capacity and one of the image", got)
	}
	want := capacity.FailureGroup{
		Code: fault.Capacity, Message: "no room for 0123456789abcd at 2026-02-01T00:00:00Z, want 9 CPUs fewer", Count: 4, FirstAt: got[0].FirstAt, LastAt: got[0].LastAt,
	}
	if diff := cmp.Diff(want, got[0]); diff != "" || got[0].FirstAt.Sub(begin) < time.Minute || got[0].LastAt.Sub(got[0].FirstAt) < 4*time.Minute {
		t.Errorf("group (-want +got):\n%s", diff)
	}
	if m := got[1].Message; strings.Contains(m, "s3cret") || strings.Contains(m, "abcdefgh") || !strings.Contains(m, "registry.example/worker") {
		t.Errorf("got %q, want the message without the password and the token", m)
	}
}

// TestErrorsOfAPlatformAreBounded refuses starts with many and with long messages.
func TestErrorsOfAPlatformAreBounded(t *testing.T) {
	t.Parallel()
	h := setup(t)
	for i := range 14 {
		h.refuseStart(fault.LaunchRefused, "refused for the reason "+strings.Repeat(string(rune('a'+i)), 400+50*i))
	}
	got := h.health().Errors
	if len(got) != 10 || !strings.Contains(got[0].Message, "nnn") || !strings.Contains(got[9].Message, "eee") {
		t.Fatalf("got %d groups, want the newest 10: %+v", len(got), got)
	}
	for _, g := range got {
		if len(g.Message) > 600 {
			t.Errorf("got a message of %d bytes, want it cut at 512", len(g.Message))
		}
	}
}

// TestFailuresOfProgramsAreNoErrorsOfAPlatform ends runs by their worker, and loses one
// machine.
func TestFailuresOfProgramsAreNoErrorsOfAPlatform(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.post()
	h.runner.last().exit(1)
	h.sweep()
	if got := h.health().Errors; len(got) != 0 {
		t.Errorf("got %+v after the exit of a program, want none", got)
	}
}

// TestErrorsThatCannotBeStoredAreStoredLater fails the first write of errors.
func TestErrorsThatCannotBeStoredAreStoredLater(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.store.resources = errors.New("the store does not answer")
	h.refuseStart(fault.Capacity, "no room")
	h.store.resources = nil
	if got := h.health().Errors; len(got) != 0 {
		t.Errorf("got %+v, want nothing stored", got)
	}
	h.refuseStart(fault.Capacity, "no room")
	if got := h.health().Errors; len(got) != 1 || got[0].Count != 2 {
		t.Errorf("got %+v, want both failures", got)
	}
}

// TestErrorsEndWithTheirPool deletes a pool and creates it again.
func TestErrorsEndWithTheirPool(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.put("reports", 1)
	h.runner.during = func(m *machine) error {
		m.exit(0)
		f := fault.New(fault.Capacity, "no room")
		f.Retryable = false
		return f
	}
	h.ok(h.once("reports"))
	h.step()
	health := func() pools.Health {
		health, err := h.service.Pools.Health(t.Context(), client, "reports")
		h.ok(err)
		return health
	}
	if got := health().Errors; len(got) != 1 {
		t.Fatalf("got %+v, want one", got)
	}
	h.ok(h.service.Pools.Delete(t.Context(), client, "reports", change.Precondition{}))
	h.put("reports", 1)
	if got := health().Errors; len(got) != 0 {
		t.Errorf("got %+v of a new pool, want none", got)
	}
}

// TestHealthExpectsTheWaitOfAPlan compares the expected wait with the plan of a run.
func TestHealthExpectsTheWaitOfAPlan(t *testing.T) {
	t.Parallel()
	h := setup(t, oneMachine)
	for range 3 {
		task := h.post()
		h.advance(30 * time.Second)
		h.succeed(task)
	}
	running := h.queue(3)
	h.clock.to(h.clock.now.Add(2 * time.Minute)) // longer than estimates are used
	got := h.health()
	if got.Expected == nil || got.Expected.P50.Sub(got.At) < 30*time.Second || got.RecentRate != 0 {
		t.Fatalf("got %+v and %v starts a second, want a wait for the queue and no start", got.Expected, got.RecentRate)
	}
	h.succeed(running[0])
	if got := h.health().RecentRate; got != 1.0/60 {
		t.Errorf("got %v starts a second, want one in the minute", got)
	}
	h.drain("default", nil)
	if got := h.health().Expected; got != nil {
		t.Errorf("got %+v of a draining pool, want none", got)
	}
}
