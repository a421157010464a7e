package machines

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// provider is a simulated runner.
type provider struct {
	*Machines
	// Runner is its name in placements and machine records.
	Runner string
	// away is the outage during which its API does not answer.
	away harness.Outage
	// lagging means that its reads show earlier states.
	lagging bool
}

// newProvider returns a platform whose API fails during the outage away.
func newProvider(w *Machines, runner string, away harness.Outage) *provider {
	return &provider{Machines: w, Runner: runner, away: away}
}

// Launch implements port.Runner.
func (r *provider) Launch(ctx context.Context, spec port.LaunchSpec) (port.MachineStatus, error) {
	r.Watch.DuringCall(spec.Env["TASK_ID"])
	if err := r.maybeLost(ctx); err != nil {
		return port.MachineStatus{}, err
	}
	switch {
	case r.Down(harness.Throttling), r.Injects("throttled call of the platform", r.Plan.Throttles):
		return port.MachineStatus{}, r.refuse(spec, fault.Throttled, "too many machines created at once")
	case r.Injects("no capacity", r.Plan.NoCapacity):
		return port.MachineStatus{}, r.refuse(spec, fault.Capacity, "no capacity")
	}
	m := r.named(spec.Name)
	if m == nil {
		m = r.create(spec)
		r.startWorkers(m)
	}
	return r.answer(m)
}

// refuse returns the fault of a launch and records it for the attempt.
func (r *provider) refuse(spec port.LaunchSpec, code fault.Code, message string) *fault.Fault {
	facts := r.Attempt(spec.Env["TASK_ID"], spec.Owner.Attempt)
	facts.LongStart = true
	facts.Refusals = append(facts.Refusals, Refusal{r.Time.Now, r.Runner, code, message})
	return fault.New(code, "%s", message)
}

// answer returns the machine of a launch. The response can be lost.
func (r *provider) answer(m *Machine) (port.MachineStatus, error) {
	if r.Injects("lost call", r.Plan.LostCalls) {
		r.Note("response about %s is lost", m.ID)
		r.UnknownMachines++
		return port.MachineStatus{}, fault.New(fault.Unavailable, "response lost")
	}
	return m.view(), nil
}

// maybeLost returns an error if the request is lost.
func (r *provider) maybeLost(ctx context.Context) error {
	r.MaybeInterrupt()
	if err := harness.Interrupted(ctx); err != nil {
		return err
	}
	if r.Down(r.away) || r.Injects("lost call", r.Plan.LostCalls) {
		return fault.New(fault.Unavailable, "request lost")
	}
	return nil
}

func (r *provider) named(name string) *Machine {
	for _, m := range r.Live {
		if m.On == r && m.Spec.Name == name {
			return m
		}
	}
	return nil
}

// create creates a machine that is not started.
func (r *provider) create(spec port.LaunchSpec) *Machine {
	r.Created++
	m := &Machine{ID: fmt.Sprintf("m%d", r.Created), On: r, Spec: spec, Phase: port.MachineCreating}
	m.VisibleAt = r.Time.Now
	if r.Injects("machine that is not listed", r.Plan.Invisible) {
		m.VisibleAt = m.VisibleAt.Add(r.UpTo(20 * time.Second))
		// A machine that is not visible by its start limit would count as gone.
		visibleBy := r.startBy(spec.Owner).Add(-2*r.Plan.Skew - 2*time.Second)
		m.VisibleAt = clamp(m.VisibleAt, r.Time.Now, visibleBy)
	}
	if r.Injects("stuck machine", r.Plan.Stuck) {
		m.stuckUntil = r.Time.Now.Add(r.UpTo(3 * time.Minute))
	}
	if r.Serves() && r.Chance(0.2) {
		m.AddressedAt = r.Time.Now.Add(r.UpTo(time.Minute))
	}
	r.ByID[m.ID] = m
	r.Live = append(r.Live, m)
	m.change()
	r.checks.CheckSecrets(spec)
	r.checks.CheckLaunch(m)
	if r.Injects("machine stopped from outside", r.Plan.Strangers) {
		r.Time.After(r.UpTo(r.Longest), func() { r.stopByStranger(m) })
	}
	r.Note("%s is created for attempt %d of %s", m.ID, spec.Owner.Attempt, spec.Owner.RunID)
	return m
}

// startBy returns the stored start limit of the attempt for which a machine is created. A run
// may be accepted, admitted and launched in one event. It is zero if a late call creates a
// machine for a run that cannot be read.
func (w *Machines) startBy(of port.MachineOwner) (by time.Time) {
	w.Observe(func() {
		if stored, err := w.Process.Store.Load(context.Background(), run.Ref{Tenant: of.Tenant, ID: of.RunID}); err == nil {
			by = stored.Attempt.StartBy
		}
	})
	return by
}

// own returns a machine of the platform, or nil if the platform does not have it.
func (r *provider) own(of port.Machine) *Machine {
	if m := r.ByID[of.ID]; m != nil && m.On == r {
		return m
	}
	return nil
}

// Inspect implements port.Runner.
func (r *provider) Inspect(ctx context.Context, of port.Machine) (port.MachineStatus, error) {
	if err := r.maybeLost(ctx); err != nil {
		return port.MachineStatus{}, err
	}
	m := r.own(of)
	if m == nil || m.Erased && !m.Alive() || r.Time.Now.Before(m.VisibleAt) {
		return port.MachineStatus{}, port.ErrNotFound
	}
	return m.view(), nil
}

// Wait implements port.Runner. Other events run during the wait.
func (r *provider) Wait(ctx context.Context, of port.Machine, phase port.MachinePhase, limit time.Duration) (port.MachineStatus, error) {
	r.await(ctx, r.own(of), phase, limit)
	return r.Inspect(ctx, of)
}

// await waits until a machine is in the phase, cannot reach it, or limit has passed.
func (r *provider) await(ctx context.Context, m *Machine, phase port.MachinePhase, limit time.Duration) {
	until := r.Time.Now.Add(limit)
	for m != nil && (m.Phase == port.MachineCreating && m.view().StartFault == nil || phase == port.MachineGone && m.Alive()) &&
		until.After(r.Time.Now) && ctx.Err() == nil {
		r.Time.Await(until.Sub(r.Time.Now), &m.changed)
	}
}

// List implements port.Runner.
func (r *provider) List(ctx context.Context, each func(port.MachineStatus) bool) error {
	if err := r.maybeLost(ctx); err != nil {
		return err
	}
	for _, m := range r.Live {
		if m.On == r && !r.Time.Now.Before(m.VisibleAt) && !each(m.view()) {
			break
		}
	}
	for _, m := range r.Kept {
		if m.On == r && !each(m.view()) {
			break
		}
	}
	return nil
}

// Stop implements port.Runner.
func (r *provider) Stop(ctx context.Context, of port.Machine, grace time.Duration) error {
	if err := r.maybeLost(ctx); err != nil {
		return err
	}
	m := r.own(of)
	if m == nil || !m.Alive() || m.Warm != nil && of.Version != "" && of.Version != m.Warm.versionName() {
		return nil
	}
	r.stop(m, grace)
	return nil
}

func (w *Machines) stop(m *Machine, grace time.Duration) {
	m.stopping = true
	facts := w.Attempt(m.Spec.Env["TASK_ID"], m.Spec.Owner.Attempt)
	if facts.NoticedAt.IsZero() {
		facts.NoticedAt = w.Time.Now
	}
	for _, p := range m.Workers {
		p.later(w.UpTo(2*time.Second), p.terminate)
	}
	if m.Phase == port.MachineCreating {
		grace = w.UpTo(2 * time.Second)
	}
	w.Time.After(grace, func() {
		w.checks.CheckKill(m)
		w.end(m, port.Exit{Code: 137, Signal: 9, Requested: true})
	})
}

// stopByStranger stops or destroys a machine from outside of Sortie.
func (w *Machines) stopByStranger(m *Machine) {
	if !m.Alive() {
		return
	}
	w.Note("a stranger stops %s", m.ID)
	w.Attempt(m.Spec.Env["TASK_ID"], m.Spec.Owner.Attempt).Strangers++
	if w.Chance(0.5) {
		w.stop(m, w.UpTo(10*time.Second))
		return
	}
	m.removed = true
	w.end(m, port.Exit{Code: 137, Signal: 9, Requested: true})
}

// Destroy implements port.Runner.
func (r *provider) Destroy(ctx context.Context, of port.Machine) error {
	if err := r.maybeLost(ctx); err != nil {
		return err
	}
	if m := r.own(of); m != nil && m.Alive() {
		r.checks.CheckDestroy(m)
		r.Watch.DuringCall(m.Spec.Env["TASK_ID"])
		if stored, ok := r.StoredRun(m.Spec.Owner); ok && m.Warm != nil && stored.State == run.ContainerCreating {
			r.Attempt(stored.TaskID, m.Spec.Owner.Attempt).Withdrawn = true
		}
		r.destroy(m)
	} else if m != nil && m.IsKept() {
		r.checks.CheckEndsRecord(m)
		r.drop(m)
	}
	return nil
}

func (w *Machines) destroy(m *Machine) {
	m.Destroyed = true
	w.Time.After(w.UpTo(time.Second), func() { w.end(m, port.Exit{Code: 137, Signal: 9, Requested: true}) })
}

// end ends a machine. If the machine is stuck, it schedules the end.
func (w *Machines) end(m *Machine, exit port.Exit) {
	if !m.Alive() {
		return
	}
	if wait := m.stuckUntil.Sub(w.Time.Now); wait > 0 {
		m.enter(port.MachineEnding)
		w.Time.After(wait, func() { w.end(m, exit) })
		return
	}
	m.Phase, m.EndedAt = port.MachineGone, w.Time.Now
	w.Live = slices.DeleteFunc(slices.Clone(w.Live), func(one *Machine) bool { return one == m })
	if !w.Injects("lost exit", w.Plan.LostExits) {
		exit.At = w.Time.Now
		m.Exit = &exit
	}
	if m.Spec.Reuse.ID != "" && !m.Destroyed && !m.removed {
		w.Kept = append(w.Kept, m)
	}
	m.Failed = !exit.Requested && exit.Code != 0
	m.change()
	if exit.Code == 0 {
		w.Attempt(m.Spec.Env["TASK_ID"], m.Spec.Owner.Attempt).ExitedZero = true
	}
	w.Note("%s is gone, code %d", m.ID, exit.Code)
}

// clamp limits at to latest, and then to earliest.
func clamp(at, earliest, latest time.Time) time.Time {
	if at.After(latest) {
		at = latest
	}
	if at.Before(earliest) {
		at = earliest
	}
	return at
}
