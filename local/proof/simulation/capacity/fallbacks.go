package capacity

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/local/proof/simulation/machines"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// CheckDetour checks the fallbacks that a run has taken since the last check.
func (w *Capacity) CheckDetour(r *run.Run) {
	if r.Detour == nil {
		return
	}
	facts := w.FactsOf(r)
	for i, step := range r.Detour.Steps {
		if !slices.Contains(facts.Steps, step) {
			w.checkStep(r, step)
			facts.Steps = append(facts.Steps, step)
		}
		for _, earlier := range r.Detour.Steps[:i] {
			if earlier.From == step.To || earlier.To == step.To {
				w.Fail("%s falls back to pool %s twice", r.ID, step.To)
			}
		}
	}
}

// CheckHome checks that an attempt is in the run's own pool if the machine of the previous
// attempt had started.
func (w *Capacity) CheckHome(before, r *run.Run) {
	if before != nil && before.Attempt.Number < r.Attempt.Number && !before.Attempt.StartedAt.IsZero() && r.InFallback() && before.State != run.Pending {
		if len(r.Detour.Steps) == 0 || r.Detour.Steps[0].Attempt <= before.Attempt.Number {
			w.Fail("attempt %d of %s is in pool %s after an attempt that started, want its own pool %s", r.Attempt.Number, r.ID, r.Slot.Pool, r.Detour.Home)
		}
	}
}

// checkStep checks that a platform gave the reason of a fallback, that a pool of the run has
// the fallback, and that the attempt's program did not fail before.
func (w *Capacity) checkStep(r *run.Run, step run.DetourStep) {
	facts, from, to := w.Attempt(r.TaskID, step.Attempt), w.poolOf(step.From), w.poolOf(step.To)
	if !to.drainedAt.IsZero() && to.drainedAt.Add(w.lookupSlack()).Before(step.At) {
		w.Fail("%s falls back to pool %s, which drains since %s", r.ID, to.Id, to.drainedAt.Sub(harness.Start))
	}
	answer, first := -1, time.Time{}
	for i, a := range facts.Refusals {
		if a.Runner != from.Definition.Placement.Runner || a.Reason() != step.Reason || a.At.After(step.At.Add(2*w.Plan.Skew)) {
			continue
		}
		if first.IsZero() {
			first = a.At
		}
		if a.Message == step.Message {
			answer = i
		}
	}
	if answer < 0 {
		w.Fail("%s falls back from %s in attempt %d because of %q, which its platform did not answer: %+v", r.ID, step.From, step.Attempt, step.Message, facts.Refusals)
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
	for _, m := range w.Machines.ByID {
		// After a lost answer, Fly does not show a gone machine to the launch.
		mine := m.Spec.Owner.RunID == r.ID && m.Spec.Owner.Attempt == step.Attempt
		if mine && m.Failed && !m.RanAt.IsZero() && m.EndedAt.Before(facts.Refusals[answer].At) && (w.Calm() || m.On.Runner != platform.RunnerFly) {
			w.Fail("%s falls back in attempt %d, whose program has failed on %s", r.ID, step.Attempt, m.ID)
		}
	}
}

// CheckRuns implements machines.Checks. It checks that the starting machine is the only one of its attempt that has run the
// program, on platforms that adopt a machine created by a lost call.
func (w *Capacity) CheckRuns(m *machines.Machine) {
	if !w.SeveralPools() {
		return
	}
	for _, other := range w.Machines.ByID {
		if other == m || other.Spec.Owner != m.Spec.Owner || other.RanAt.IsZero() {
			continue
		}
		strangers := w.Attempt(m.Spec.Env["TASK_ID"], m.Spec.Owner.Attempt).Strangers
		if other.On != m.On || m.On.Runner != platform.RunnerFly && strangers == 0 || other.Warm != nil || m.Warm != nil {
			w.Fail("attempt %d of %s runs on %s of %s after %s of %s", m.Spec.Owner.Attempt, m.Spec.Owner.RunID, m.ID, m.On.Runner, other.ID, other.On.Runner)
		}
	}
}

// mayRun reports whether the program of a machine runs or may start. A machine that is
// destroyed before its start never starts.
func mayRun(m *machines.Machine) bool {
	return m.Alive() && (!m.RanAt.IsZero() || m.Phase != port.MachineEnding && !m.Destroyed)
}

// CheckFallback checks that a machine created after a fallback is the only one of its run that
// may run a program, on all platforms.
func (w *Capacity) CheckFallback(m *machines.Machine) {
	if !w.Mixed() {
		return
	}
	var r run.Run
	var err error
	w.Observe(func() {
		r, err = w.Process.Store.Load(context.Background(), run.Ref{Tenant: m.Spec.Owner.Tenant, ID: m.Spec.Owner.RunID})
	})
	if err != nil || r.Attempt.Number != m.Spec.Owner.Attempt {
		return
	}
	if p := w.poolOf(r.Slot.Pool); r.IsCurrent(m.Spec.Owner.Attempt) && p.Definition.Placement.Runner != m.On.Runner {
		w.Fail("%s of attempt %d of %s is created on %s, want %s as its pool %s has", m.ID, r.Attempt.Number, r.ID, m.On.Runner, p.Definition.Placement.Runner, p.Id)
	}
	if r.Detour == nil {
		return
	}
	for _, other := range w.Machines.Live {
		left := slices.ContainsFunc(r.Detour.Steps, func(s run.DetourStep) bool { return s.Attempt == other.Spec.Owner.Attempt })
		if other.Spec.Owner.RunID == r.ID && left && mayRun(other) {
			w.Fail("%s of attempt %d of %s is created on %s while %s of attempt %d, which fell back, is %s on %s",
				m.ID, m.Spec.Owner.Attempt, r.ID, m.On.Runner, other.ID, other.Spec.Owner.Attempt, other.Phase, other.On.Runner)
		}
	}
}

// CheckDetours checks the fallbacks of an ended run. Each is an event with the platform's
// message. A run that got no machine names all platforms.
func (w *Capacity) CheckDetours(r *run.Run, events []run.Event) {
	for _, step := range w.FactsOf(r).Steps {
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
	if (machines.Refusal{Code: r.Fault.Code}).Reason() == "" || len(r.Fault.Message) >= limit.Message-10 {
		return
	}
	for _, step := range r.Detour.Steps {
		if !strings.Contains(r.Fault.Message, "pool "+step.From+": "+step.Message) {
			w.Fail("%s failed with %q, want also the message %q of pool %s", r.ID, r.Fault.Message, step.Message, step.From)
		}
	}
}
