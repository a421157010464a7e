package run_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// anyFact draws a random fact, which may be late or of another attempt.
func anyFact(t *rapid.T, r run.Run) run.Fact {
	attempt := r.Attempt.Number
	if rapid.IntRange(0, 9).Draw(t, "stale") == 0 {
		attempt = rapid.IntRange(0, 4).Draw(t, "attempt")
	}
	exits := rapid.SampledFrom([]*run.Exit{nil, {Code: 0}, {Code: 1}, {Code: 139, Signal: 11}, {Code: 137, OOM: true}, {Code: 143, Requested: true}})
	roll := rapid.Float64Range(0, 0.999).Draw(t, "roll")
	limit := rapid.IntRange(0, 2).Draw(t, "limit")
	refusal := rapid.SampledFrom([]fault.Code{fault.Throttled, fault.Unavailable, fault.Capacity, fault.Image, fault.LaunchRefused})
	settled := run.Settled{Rand: roll, Exit: exits.Draw(t, "end")}
	switch rapid.IntRange(0, 2).Draw(t, "output") {
	case 0:
		settled.Output = &run.Output{Upload: run.Upload{Key: "k", FileName: "f", Size: 1}}
	case 1:
		settled.Fault = fault.New(fault.OutputMissing, "gone")
	}
	report := run.Report{Digest: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "digest"), Exit: exits.Draw(t, "reported")}
	if report.Success = rapid.Bool().Draw(t, "success"); report.Success {
		report.Upload = &run.Upload{Key: "k", FileName: "f", Size: 1}
	}
	return rapid.SampledFrom([]run.Fact{
		run.Due{},
		run.Admitted{Pool: "p", Limit: limit},
		run.Enqueued{Pool: "p", Limit: limit},
		run.Granted{Limit: limit},
		run.StartDeferred{Attempt: attempt},
		run.Checked{},
		run.Checked{Slots: 2},
		run.Checked{Violations: violated(spec.MaxConcurrentRuns)},
		run.Checked{Violations: violated(spec.CatchUpWindow)},
		run.ActionStarted{},
		run.ActionEnded{},
		run.ActionEnded{Failure: "f"},
		run.JobGranted{Limit: 2},
		run.JobGranted{},
		run.ActionRecheck{},
		run.JobLimited{},
		run.CheckBegun{},
		run.TokenStored{Step: r.Wait.Step, Generation: r.Wait.Generation, Token: fmt.Sprint("T", r.Wait.Generation)},
		run.TokenStored{Step: run.StepContainerCreating, Generation: 1, Token: "old"},
		run.MachineCreated{Attempt: attempt, Machine: platform.Machine{ID: fmt.Sprint("m", attempt)}},
		run.MachineRunning{Attempt: attempt},
		run.MachineWaits{Attempt: attempt, Message: rapid.SampledFrom([]string{"", "w"}).Draw(t, "words")},
		run.StartRefused{Attempt: attempt, Fault: fault.New(refusal.Draw(t, "refusal"), "no"), Rand: roll},
		run.StartFailed{Attempt: attempt, Fault: fault.New(rapid.SampledFrom([]fault.Code{fault.Image, fault.Capacity, fault.LaunchRefused}).Draw(t, "code"), "m"), Gone: roll > 0.5, Fallbacks: []platform.Fallback{{Pool: "spare", On: []platform.FallbackReason{platform.FallbackImage}}}},
		run.MachineGone{Attempt: attempt, Exit: exits.Draw(t, "exit")},
		run.Reported{Attempt: attempt, Report: report},
		run.Reported{Attempt: attempt, WorkerID: "v", Report: report},
		run.WorkerContacted{Attempt: attempt, WorkerID: "w", Started: true, HandlesSigterm: roll > 0.5},
		run.WorkerContacted{Attempt: attempt, WorkerID: rapid.SampledFrom([]string{"w", "v"}).Draw(t, "worker"), Missing: roll > 0.9},
		run.CancelDelivered{Attempt: attempt},
		run.Evaluated{Contact: run.Contact{LastAt: r.Attempt.LastContactAt, Reception: run.Reception{Received: true, Since: r.Attempt.StartedAt, Gap: time.Second}}},
		run.Evaluated{Contact: run.Contact{LastAt: r.Attempt.LastContactAt, Reception: run.Reception{Received: true}}},
		run.Evaluated{Contact: run.Contact{LastAt: r.Attempt.LastContactAt.Add(time.Minute), Reception: run.Reception{Received: roll > 0.5}}},
		run.Evaluated{},
		run.Evaluated{Failed: true},
		run.Evaluated{Phase: run.PhaseGone},
		run.Evaluated{Phase: run.PhaseRunning},
		run.Evaluated{Generation: 1, Failed: true},
		settled, settled,
		run.CancelRequested{By: "x"},
		run.Abandoned{Message: "m"},
		run.Restarted{Start: r.Execution.Start, Cause: "c"},
		run.Restarted{Start: 1, Cause: "c"},
		run.HandedOver{Generation: r.Wait.Generation, Retries: int(roll * 4000)},
		run.Visited{Fact: run.Evaluated{Generation: r.Wait.Generation}, Retries: int(roll * 3000)},
		run.ExecutionChecked{},
		run.RepairFailed{},
		run.SlotReleased{Attempt: attempt},
		run.ExecutionChecked{Done: true},
		run.OutputExpiring{At: r.CreatedAt},
		run.OutputDeleted{},
		run.DeletionFailed{},
		run.Relabelled{Change: label.Of(map[string]string{"roll": strconv.Itoa(int(roll * 3))})},
		run.LogsDeleted{},
		run.PinChanged{Pinned: roll < 0.5, By: run.Actor{Subject: "me"}},
		run.RetentionChecked{Newest: roll < 0.5},
	}).Draw(t, "fact")
}

// TestAnyFacts checks invariants for random facts in any order at any time: legal transitions
// only, events without gaps, one end, slots that match the state, and an execution that always
// has a next state.
func TestAnyFacts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := epoch
		first := fresh()
		if rapid.Bool().Draw(t, "constrained") {
			constrain(&first, rapid.SampledFrom(spec.ViolationTypes()).Draw(t, "action"))
		}
		if rapid.Bool().Draw(t, "scheduled") {
			first.ScheduledAt = now.Add(time.Minute)
		}
		if completion := rapid.SampledFrom([]spec.Completion{"", spec.CompletionExit, spec.CompletionCallback}).Draw(t, "completion"); completion != "" {
			first.Work.Kind, first.Work.Program = spec.KindJob, &spec.Program{Completion: completion}
		}
		r := run.New(first, now).Run
		ends := 0
		for range rapid.IntRange(1, 60).Draw(t, "facts") {
			now = now.Add(time.Duration(rapid.IntRange(0, 4000).Draw(t, "seconds")) * time.Second)
			fact := anyFact(t, r)
			d, err := run.Decide(r, fact, now)
			if err != nil {
				if fault.Of(err).Code == fault.Internal {
					t.Fatalf("%T on %s: %v", fact, r.State, err)
				}
				continue
			}
			ends += holds(t, r, fact, d, now)
			r = d.Run
		}
		if r.State.Terminal() != (ends == 1) {
			t.Fatalf("%s: got %d terminal events", r.State, ends)
		}
	})
}

func holds(t *rapid.T, before run.Run, fact run.Fact, d run.Decision, now time.Time) (ends int) {
	after := d.Run
	if !d.Changed {
		return 0
	}
	state := before.State
	for i, e := range d.Events {
		if e.Seq != before.EventCount+i+1 || e.At != now || len(e.ID) != 26 {
			t.Fatalf("%T: got event %+v after %d events", fact, e, before.EventCount)
		}
		if e.From != e.State {
			if e.From != state || !e.From.CanBecome(e.State) {
				t.Fatalf("%T on %s: illegal %s -> %s", fact, before.State, e.From, e.State)
			}
			state = e.State
			if state.Terminal() {
				ends++
			}
		}
	}
	switch {
	case state != after.State:
		t.Fatalf("%T: events end in %s, record in %s", fact, state, after.State)
	case before.State.Terminal() && after.State != before.State:
		t.Fatalf("%T: left a terminal state", fact)
	case after.Wait.Generation < before.Wait.Generation:
		t.Fatalf("%T: generation decreased", fact)
	case after.State.HasMachine() && after.State != run.Terminating && after.Slot.State != platform.SlotHeld && !after.Queued():
		t.Fatalf("%T: %s without a slot", fact, after.State)
	case (after.State == run.Retrying || after.State == run.PreRun || after.State.Terminal()) && after.Slot.State != "":
		t.Fatalf("%T: %s with a slot", fact, after.State)
	case after.State.HasMachine() && (after.Attempt.Number < 1 || after.Attempt.MachineName == ""):
		t.Fatalf("%T: %s without a machine name", fact, after.State)
	case after.State.Terminal() == after.EndedAt.IsZero() || after.State.Terminal() == (after.ExpiresAt.IsZero() && !after.Held):
		t.Fatalf("%T: %s, ended %v", fact, after.State, after.EndedAt)
	case after.Held && (!after.ExpiresAt.IsZero() || !after.PurgeAt().IsZero() || after.BytesDue().IsZero()), after.State.Terminal() && after.Pin != nil && !after.Held:
		t.Fatalf("%T: got a held run that expires at %s and is due at %s, held %t", fact, after.ExpiresAt, after.BytesDue(), after.Held)
	case after.State != run.Completed && after.State.Terminal() && after.Fault == nil:
		t.Fatalf("%T: %s without a fault", fact, after.State)
	case !after.State.Terminal() && after.Execution.ActBy.Before(now) && !slices.Contains([]string{"run.Relabelled", "run.PinChanged"}, fmt.Sprintf("%T", fact)): // these keep the time
		t.Fatalf("%T: no check is due for a run in %s", fact, after.State)
	case stale(fact, before) && after.Wait.Token != before.Wait.Token:
		t.Fatalf("%T: stored a token of an earlier entry", fact)
	case before.Wait.Token != "" && before.Wait.Token != after.Wait.Token && !released(fact, d, before.Wait.Token):
		t.Fatalf("%T: token %s was dropped", fact, before.Wait.Token)
	case d.Heartbeat.Open != nil && d.Heartbeat.Close, d.Heartbeat.Open != nil && d.Heartbeat.Open.Attempt != after.Attempt.Number:
		t.Fatalf("%T: heartbeat item without a worker: %+v", fact, d.Heartbeat)
	case !before.State.Terminal() && before.Attempt.WorkerID != "" && before.Attempt.Outcome == "" && (after.Attempt.Outcome != "" || after.State.Terminal()) && !d.Heartbeat.Close:
		t.Fatalf("%T: heartbeat item is open after the attempt's end", fact)
	case before.Attempt.WorkerID != "" && after.Attempt.Number == before.Attempt.Number && after.Attempt.WorkerID != before.Attempt.WorkerID:
		t.Fatalf("%T: the attempt's worker changed", fact)
	case before.Cancel != nil && after.State != before.State && (after.State == run.Retrying || after.State == run.ContainerCreating ||
		after.State == run.Completed && before.Attempt.Outcome != run.OutcomeSucceeded):
		t.Fatalf("%T: got %s after a cancel request", fact, after.State)
	case after.Spent.Attempts > after.Policy.Retry.MaxAttempts:
		t.Fatalf("%T: got %d spent attempts", fact, after.Spent.Attempts)
	}
	route := run.RouteOf(after, now)
	if route.HeartbeatSeconds < 1 || route.TimeoutSeconds <= route.HeartbeatSeconds || route.Seconds < 1 {
		t.Fatalf("%T: got a route that Step Functions rejects: %+v", fact, route)
	}
	return ends
}

// stale reports whether the fact stores a token of an earlier generation.
func stale(fact run.Fact, before run.Run) bool {
	stored, ok := fact.(run.TokenStored)
	return ok && stored.Generation != before.Wait.Generation
}

// released reports whether the token was completed, or belongs to a state that the execution
// has already left.
func released(fact run.Fact, d run.Decision, token string) bool {
	for _, e := range d.Effects {
		if e.Token == token {
			return true
		}
	}
	switch fact.(type) {
	case run.Evaluated, run.Visited, run.HandedOver, run.Restarted, run.TokenStored:
		return true
	}
	return false
}

func TestDelayGrowsToLimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		retry := spec.Retry{
			InitialDelay: time.Duration(rapid.IntRange(0, 100).Draw(t, "initial")) * time.Second,
			Multiplier:   rapid.Float64Range(0, 10).Draw(t, "multiplier"),
			MaxDelay:     time.Duration(rapid.IntRange(1, 1000).Draw(t, "max")) * time.Second,
			Jitter:       rapid.Float64Range(0, 1).Draw(t, "jitter"),
		}
		n := rapid.IntRange(-1, 100000).Draw(t, "n")
		delay := retry.Delay(n, rapid.Float64Range(0, 0.999).Draw(t, "roll"))
		if delay < time.Second || delay > retry.MaxDelay {
			t.Fatalf("got %v, want 1 s to %v", delay, retry.MaxDelay)
		}
		if whole := retry.Delay(n, 0); delay > whole {
			t.Fatalf("with jitter: got %v, want at most %v", delay, whole)
		}
	})
}
