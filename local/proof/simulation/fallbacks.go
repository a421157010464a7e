package simulation

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// checkDetour checks the fallbacks that a run has taken since the last check.
func (w *world) checkDetour(r *run.Run) {
	if r.Detour == nil {
		return
	}
	facts := w.factsOf(r)
	for i, step := range r.Detour.Steps {
		if !slices.Contains(facts.steps, step) {
			w.checkStep(r, step)
			facts.steps = append(facts.steps, step)
		}
		for _, earlier := range r.Detour.Steps[:i] {
			if earlier.From == step.To || earlier.To == step.To {
				w.Fail("%s falls back to pool %s twice", r.ID, step.To)
			}
		}
	}
}

// checkHome checks that an attempt is in the run's own pool if the machine of the previous
// attempt had started.
func (w *world) checkHome(before, r *run.Run) {
	if before != nil && before.Attempt.Number < r.Attempt.Number && !before.Attempt.StartedAt.IsZero() && r.InFallback() && before.State != run.Pending {
		if len(r.Detour.Steps) == 0 || r.Detour.Steps[0].Attempt <= before.Attempt.Number {
			w.Fail("attempt %d of %s is in pool %s after an attempt that started, want its own pool %s", r.Attempt.Number, r.ID, r.Slot.Pool, r.Detour.Home)
		}
	}
}

// checkStep checks that a platform gave the reason of a fallback, that a pool of the run has
// the fallback, and that the attempt's program did not fail before.
func (w *world) checkStep(r *run.Run, step run.DetourStep) {
	facts, from, to := w.attempt(r.TaskID, step.Attempt), w.poolOf(step.From), w.poolOf(step.To)
	if !to.drainedAt.IsZero() && to.drainedAt.Add(w.lookupSlack()).Before(step.At) {
		w.Fail("%s falls back to pool %s, which drains since %s", r.ID, to.id, to.drainedAt.Sub(harness.Start))
	}
	answer, first := -1, time.Time{}
	for i, a := range facts.refusals {
		if a.runner != from.definition.Placement.Runner || a.reason() != step.Reason || a.at.After(step.At.Add(2*w.Plan.Skew)) {
			continue
		}
		if first.IsZero() {
			first = a.at
		}
		if a.message == step.Message {
			answer = i
		}
	}
	if answer < 0 {
		w.Fail("%s falls back from %s in attempt %d because of %q, which its platform did not answer: %+v", r.ID, step.From, step.Attempt, step.Message, facts.refusals)
		return
	}
	fallbacks := slices.Clone(from.ever)
	if home := w.poolOf(r.Detour.Home); home != from {
		fallbacks = append(fallbacks, home.ever...)
	}
	if !slices.ContainsFunc(fallbacks, func(f platform.Fallback) bool {
		long := step.Reason != platform.FallbackThrottled || step.At.Sub(first)+2*w.Plan.Skew+time.Second >= f.ThrottledFor
		return f.Pool == step.To && slices.Contains(f.On, step.Reason) && long
	}) {
		w.Fail("%s falls back from %s to %s because of %s, %s after the first answer, which no pool allows", r.ID, step.From, step.To, step.Reason, step.At.Sub(first))
	}
	for _, m := range w.machines.byID {
		// After a lost answer, Fly does not show a gone machine to the launch.
		mine := m.spec.Owner.RunID == r.ID && m.spec.Owner.Attempt == step.Attempt
		if mine && m.failed && !m.ranAt.IsZero() && m.endedAt.Before(facts.refusals[answer].at) && (w.calm() || m.on.runner != platform.RunnerFly) {
			w.Fail("%s falls back in attempt %d, whose program has failed on %s", r.ID, step.Attempt, m.id)
		}
	}
}

// CheckRuns implements checks. It checks that the starting machine is the only one of its attempt that has run the
// program, on platforms that adopt a machine created by a lost call.
func (w *world) CheckRuns(m *machine) {
	if !w.SeveralPools() {
		return
	}
	for _, other := range w.machines.byID {
		if other == m || other.spec.Owner != m.spec.Owner || other.ranAt.IsZero() {
			continue
		}
		strangers := w.attempt(m.spec.Env["TASK_ID"], m.spec.Owner.Attempt).strangers
		if other.on != m.on || m.on.runner != platform.RunnerFly && strangers == 0 || other.warm != nil || m.warm != nil {
			w.Fail("attempt %d of %s runs on %s of %s after %s of %s", m.spec.Owner.Attempt, m.spec.Owner.RunID, m.id, m.on.runner, other.id, other.on.runner)
		}
	}
}

// mayRun reports whether the program of a machine runs or may start. A machine that is
// destroyed before its start never starts.
func (m *machine) mayRun() bool {
	return m.alive() && (!m.ranAt.IsZero() || m.phase != port.MachineEnding && !m.destroyed)
}

// checkFallback checks that a machine created after a fallback is the only one of its run that
// may run a program, on all platforms.
func (w *world) checkFallback(m *machine) {
	if !w.Mixed() {
		return
	}
	var r run.Run
	var err error
	w.Observe(func() {
		r, err = w.Process.Store.Load(context.Background(), run.Ref{Tenant: m.spec.Owner.Tenant, ID: m.spec.Owner.RunID})
	})
	if err != nil || r.Attempt.Number != m.spec.Owner.Attempt {
		return
	}
	if p := w.poolOf(r.Slot.Pool); r.IsCurrent(m.spec.Owner.Attempt) && p.definition.Placement.Runner != m.on.runner {
		w.Fail("%s of attempt %d of %s is created on %s, want %s as its pool %s has", m.id, r.Attempt.Number, r.ID, m.on.runner, p.definition.Placement.Runner, p.id)
	}
	if r.Detour == nil {
		return
	}
	for _, other := range w.machines.live {
		left := slices.ContainsFunc(r.Detour.Steps, func(s run.DetourStep) bool { return s.Attempt == other.spec.Owner.Attempt })
		if other.spec.Owner.RunID == r.ID && left && other.mayRun() {
			w.Fail("%s of attempt %d of %s is created on %s while %s of attempt %d, which fell back, is %s on %s",
				m.id, m.spec.Owner.Attempt, r.ID, m.on.runner, other.id, other.spec.Owner.Attempt, other.phase, other.on.runner)
		}
	}
}

// checkDetours checks the fallbacks of an ended run. Each is an event with the platform's
// message. A run that got no machine names all platforms.
func (w *world) checkDetours(r *run.Run, events []run.Event) {
	for _, step := range w.factsOf(r).steps {
		count := 0
		for _, e := range events {
			if e.Type == run.EventStartRefused && e.Message == "pool "+step.From+": "+step.Message+"; falls back to pool "+step.To {
				count++
			}
		}
		if count == 0 {
			w.Fail("%s has no event of its fallback from %s to %s", r.ID, step.From, step.To)
		}
	}
	if r.State != run.Failed || !r.InFallback() || r.FallsBack() || r.Fault == nil {
		return
	}
	if (refusal{code: r.Fault.Code}).reason() == "" || len(r.Fault.Message) >= limit.Message-10 {
		return
	}
	for _, step := range r.Detour.Steps {
		if !strings.Contains(r.Fault.Message, "pool "+step.From+": "+step.Message) {
			w.Fail("%s failed with %q, want also the message %q of pool %s", r.ID, r.Fault.Message, step.Message, step.From)
		}
	}
}
