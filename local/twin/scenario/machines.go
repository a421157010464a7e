package scenario

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/local/twin/virtual"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// runner is the drawn platform of machines. It implements port.Runner and port.StartLimits.
type runner struct {
	w *world
	// byID has the machines that are not gone, live has them in the order of their creation.
	byID    map[string]*machine
	live    []*machine
	created int
	// startTime is the time until a program runs.
	startTime time.Duration
}

// machine is a drawn machine with its program.
type machine struct {
	id       string
	spec     port.LaunchSpec
	phase    port.MachinePhase
	exit     *port.Exit
	stopping bool
	created  time.Time
	// changed fires when the phase changes.
	changed virtual.Signal
}

func newRunner(w *world) *runner {
	r := &runner{w: w, byID: map[string]*machine{}, startTime: 3 * time.Second}
	if text := w.s.File.StartTime; text != "" {
		r.startTime = text.Value()
	}
	return r
}

func (m *machine) view() port.MachineStatus {
	return port.MachineStatus{
		Machine: port.Machine{ID: m.id}, Name: m.spec.Name, Phase: m.phase, Owner: m.spec.Owner, Exit: m.exit, CreatedAt: m.created,
	}
}

// away returns the fault of a call during an outage.
func (r *runner) away() error {
	if r.w.fault(Outage) != nil {
		return fault.New(fault.Unavailable, "no response from the API of the machines")
	}
	return nil
}

// place is the place of StartLimits.
const place = "scenario"

// StartLimits implements port.StartLimits.
func (r *runner) StartLimits(platform.Placement) []fleet.StartPace {
	l := r.w.s.File.Limits
	if l.StartsPerSecond == nil {
		return nil
	}
	pace := fleet.StartPace{App: place, Interval: time.Duration(float64(time.Second) / *l.StartsPerSecond), Burst: 1}
	if l.Burst != nil {
		pace.Burst = *l.Burst
	}
	return []fleet.StartPace{pace}
}

// AppOf implements port.StartLimits.
func (r *runner) AppOf(where platform.Placement, _ string) string {
	if len(r.StartLimits(where)) == 0 {
		return ""
	}
	return place
}

// Launch implements port.Runner.
func (r *runner) Launch(_ context.Context, spec port.LaunchSpec) (port.MachineStatus, error) {
	if err := r.away(); err != nil {
		return port.MachineStatus{}, err
	}
	if i := slices.IndexFunc(r.live, func(m *machine) bool { return m.spec.Name == spec.Name }); i >= 0 {
		return r.live[i].view(), nil
	}
	if r.w.fault(Throttling) != nil {
		return port.MachineStatus{}, fault.New(fault.Throttled, "429 from the API of the machines")
	}
	r.created++
	m := &machine{id: fmt.Sprintf("m%d", r.created), spec: spec, phase: port.MachineCreating, created: r.w.time.Now}
	r.byID[m.id] = m
	r.live = append(r.live, m)
	r.w.tally.machines(len(r.live))
	r.w.time.After(r.startTime, func() {
		if m.phase == port.MachineCreating {
			m.enter(port.MachineRunning)
			r.w.begin(m)
		}
	})
	return m.view(), nil
}

func (m *machine) enter(phase port.MachinePhase) {
	m.phase = phase
	m.changed.Fire()
}

// Inspect implements port.Runner.
func (r *runner) Inspect(_ context.Context, of port.Machine) (port.MachineStatus, error) {
	if err := r.away(); err != nil {
		return port.MachineStatus{}, err
	}
	m := r.byID[of.ID]
	if m == nil {
		return port.MachineStatus{}, port.ErrNotFound
	}
	return m.view(), nil
}

// Wait implements port.Runner. Other events happen during the wait.
func (r *runner) Wait(ctx context.Context, of port.Machine, phase port.MachinePhase, most time.Duration) (port.MachineStatus, error) {
	m, until := r.byID[of.ID], r.w.time.Now.Add(most)
	for m != nil && (m.phase == port.MachineCreating || phase == port.MachineGone && m.phase != port.MachineGone) && until.After(r.w.time.Now) {
		r.w.time.Await(until.Sub(r.w.time.Now), &m.changed)
	}
	return r.Inspect(ctx, of)
}

// List implements port.Runner.
func (r *runner) List(_ context.Context, each func(port.MachineStatus) bool) error {
	if err := r.away(); err != nil {
		return err
	}
	for _, m := range r.live {
		if !each(m.view()) {
			break
		}
	}
	return nil
}

// Stop implements port.Runner. Every program ends a second after SIGTERM.
func (r *runner) Stop(_ context.Context, of port.Machine, grace time.Duration) error {
	if err := r.away(); err != nil {
		return err
	}
	if m := r.byID[of.ID]; m != nil && m.phase != port.MachineGone && !m.stopping {
		m.stopping = true
		r.w.time.After(min(time.Second, grace), func() { r.end(m, &port.Exit{Code: 143, Signal: 15, Requested: true}) })
	}
	return nil
}

// Destroy implements port.Runner.
func (r *runner) Destroy(_ context.Context, of port.Machine) error {
	if err := r.away(); err != nil {
		return err
	}
	if m := r.byID[of.ID]; m != nil && m.phase != port.MachineGone {
		m.stopping = true
		r.end(m, &port.Exit{Code: 137, Signal: 9, Requested: true})
	}
	return nil
}

// keepFor is the time for which the platform answers about a machine that is gone.
const keepFor = 24 * time.Hour

// end ends a machine. A nil exit is that of a lost machine.
func (r *runner) end(m *machine, exit *port.Exit) {
	if m.phase == port.MachineGone {
		return
	}
	if m.exit = exit; exit != nil {
		exit.At = r.w.time.Now
	}
	r.live = slices.DeleteFunc(r.live, func(one *machine) bool { return one == m })
	r.w.tally.machines(len(r.live))
	r.w.tally.machineEnded(m)
	m.enter(port.MachineGone)
	r.w.time.Push(keepFor, true, func() { delete(r.byID, m.id) })
}
