package fake

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// Program is the program of an image. It returns the exit code.
type Program func(Process) int

// Process is a program's view of its machine.
type Process struct {
	MachineID string
	Env       map[string]string
	// Terminated is closed by SIGTERM, Killed by SIGKILL. A killed machine is gone immediately,
	// before its program returns.
	Terminated, Killed <-chan struct{}
}

// RunnerConfig configures a Runner. Programs and Clock are required.
type RunnerConfig struct {
	// Kind is the Runner of the machines; "" is "fake".
	Kind string
	// Programs maps each image to its program.
	Programs map[string]Program
	Clock    clock.Clock
	// Plan decides the fate of each call. A nil Plan applies all.
	Plan Plan
	// Complain reports calls that the port does not allow, like testing.T.Errorf. If it is nil,
	// they are not reported.
	Complain func(format string, args ...any)
}

// Runner runs machines as goroutines. Changes are visible immediately. It is safe for
// concurrent use.
type Runner struct {
	calls
	cfg      RunnerConfig
	programs sync.WaitGroup

	mu       sync.Mutex
	next     int
	machines []*machine
	refusals map[string]error
	jams     map[string]*fault.Fault
	closed   bool
	// hidden is the name of a machine in a part of the platform that cannot be listed. part is
	// the error for that part.
	hidden string
	part   error
}

var _ port.Runner = (*Runner)(nil)

// NewRunner returns a Runner without machines. The caller must close it.
func NewRunner(cfg RunnerConfig) *Runner {
	if cfg.Complain == nil {
		cfg.Complain = func(string, ...any) {}
	}
	cfg.Kind = cmp.Or(cfg.Kind, "fake")
	return &Runner{cfg: cfg, calls: calls{plan: cfg.Plan}, refusals: map[string]error{}, jams: map[string]*fault.Fault{}}
}

// Close kills all machines and waits for their programs to return.
func (r *Runner) Close() {
	r.mu.Lock()
	r.closed = true
	for _, m := range r.machines {
		m.destroy()
	}
	r.mu.Unlock()
	r.programs.Wait()
}

// Refuse makes the next launch with the name return err without creating a machine.
func (r *Runner) Refuse(name string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refusals[name] = err
}

// Jam makes the machine of the next launch with the name never start because of the fault.
func (r *Runner) Jam(name string, why *fault.Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.jams[name] = why
}

// Occupy creates a running machine with the name that does not belong to Sortie.
func (r *Runner) Occupy(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.add(port.LaunchSpec{Name: name})
	m.foreign = true
	m.now.Phase = port.MachineRunning
}

// Machines returns all machines in the order of their creation, including those that are gone.
func (r *Runner) Machines() []port.MachineStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]port.MachineStatus, 0, len(r.machines))
	for _, m := range r.machines {
		all = append(all, m.look())
	}
	return all
}

// ask makes a call with the fate that the plan decides. It reports a call without a deadline.
func (r *Runner) ask(ctx context.Context, method, subject string, write bool, do func() error) error {
	if _, ok := ctx.Deadline(); !ok {
		r.cfg.Complain("%s was called without a deadline", method)
	}
	var refused error
	err := r.call(ctx, method, subject, write, func() error {
		err := do()
		if err != nil && !fault.Is(err, fault.Unavailable) {
			refused = err // the platform's rejection is known even if an answer can be lost
		}
		return err
	})
	if refused != nil {
		return refused
	}
	return err
}

// Launch implements port.Runner.
func (r *Runner) Launch(ctx context.Context, spec port.LaunchSpec) (created port.MachineStatus, err error) {
	err = r.ask(ctx, "Launch", spec.Name, true, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		created, err = r.launch(spec)
		return err
	})
	if err != nil {
		return port.MachineStatus{}, err
	}
	return created, nil
}

var validName = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)

func (r *Runner) launch(spec port.LaunchSpec) (port.MachineStatus, error) {
	if err := r.refusals[spec.Name]; err != nil {
		delete(r.refusals, spec.Name)
		return port.MachineStatus{}, err
	}
	printable := !strings.ContainsFunc(spec.Owner.Tenant+spec.Owner.RunID, func(c rune) bool { return c < ' ' || c > '~' })
	if !validName.MatchString(spec.Name) || spec.Image == "" || spec.MemoryMB%256 != 0 || !printable || r.closed {
		return port.MachineStatus{}, fault.New(fault.LaunchRefused, "cannot launch %q: invalid specification", spec.Name)
	}
	if spec.Owner.RunID == "" || spec.Owner.Tenant == "" || spec.Owner.Attempt < 1 {
		r.cfg.Complain("Launch of %q: incomplete owner %+v", spec.Name, spec.Owner)
	}
	for _, m := range r.machines {
		if m.spec.Name != spec.Name || m.gone() {
			continue
		}
		if m.foreign || m.spec.Owner != spec.Owner {
			return port.MachineStatus{}, fault.New(fault.LaunchRefused, "the name %q is taken by another machine", spec.Name)
		}
		return m.look(), nil
	}
	program, ok := r.cfg.Programs[spec.Image]
	if !ok {
		return port.MachineStatus{}, fault.New(fault.Image, "unknown image %q", spec.Image)
	}
	m := r.add(spec)
	if why, jammed := r.jams[spec.Name]; jammed {
		delete(r.jams, spec.Name)
		m.now.StartFault = why
		return m.look(), nil
	}
	created := m.look()
	r.programs.Go(func() { m.run(program) })
	return created, nil
}

func (r *Runner) add(spec port.LaunchSpec) *machine {
	r.next++
	m := newMachine(r.cfg.Kind, fmt.Sprintf("%06d", r.next), spec, r.cfg.Clock)
	r.machines = append(r.machines, m)
	return m
}

func (r *Runner) find(at port.Machine) *machine {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.machines, func(m *machine) bool { return at.Runner == r.cfg.Kind && m.id == at.ID })
	if i < 0 {
		return nil
	}
	return r.machines[i]
}

// Inspect implements port.Runner.
func (r *Runner) Inspect(ctx context.Context, at port.Machine) (now port.MachineStatus, err error) {
	err = r.ask(ctx, "Inspect", at.ID, false, func() error {
		m := r.find(at)
		if m == nil {
			return fmt.Errorf("cannot look up machine %q: %w", at.ID, port.ErrNotFound)
		}
		now = m.look()
		return nil
	})
	if err != nil {
		return port.MachineStatus{}, err
	}
	return now, nil
}

// Wait implements port.Runner.
func (r *Runner) Wait(ctx context.Context, at port.Machine, phase port.MachinePhase, limit time.Duration) (now port.MachineStatus, err error) {
	if limit < time.Second || limit > time.Minute || (phase != port.MachineRunning && phase != port.MachineGone) {
		r.cfg.Complain("Wait for phase %q and %v", phase, limit)
	}
	err = r.ask(ctx, "Wait", at.ID, false, func() error {
		m := r.find(at)
		if m == nil {
			return fmt.Errorf("cannot wait for machine %q: %w", at.ID, port.ErrNotFound)
		}
		now, err = m.wait(ctx, phase, limit)
		return err
	})
	if err != nil {
		return port.MachineStatus{}, err
	}
	return now, nil
}

// List implements port.Runner. After FailPart it returns an error for the failed part.
func (r *Runner) List(ctx context.Context, each func(port.MachineStatus) bool) error {
	var found []port.MachineStatus
	var part error
	err := r.ask(ctx, "List", "", false, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		found, part = nil, r.part
		for _, m := range r.machines {
			if now := m.look(); !m.foreign && now.Phase != port.MachineGone && (part == nil || now.Name != r.hidden) {
				found = append(found, now)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, m := range found {
		if !each(m) {
			return nil
		}
	}
	return part
}

// FailPart makes List fail for the part of the platform with the named machine.
func (r *Runner) FailPart(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hidden, r.part = name, fault.New(fault.Unavailable, "cannot list the part of machine %s", name)
}

// Stop implements port.Runner.
func (r *Runner) Stop(ctx context.Context, at port.Machine, grace time.Duration) error {
	return r.ask(ctx, "Stop", at.ID, true, func() error {
		if m := r.find(at); m != nil {
			m.stop(grace)
		}
		return nil
	})
}

// Destroy implements port.Runner.
func (r *Runner) Destroy(ctx context.Context, at port.Machine) error {
	return r.ask(ctx, "Destroy", at.ID, true, func() error {
		if m := r.find(at); m != nil {
			m.destroy()
		}
		return nil
	})
}
