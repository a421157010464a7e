// Package runnerfake is a Runner in memory: its programs are functions.
//
// It keeps the Runner's promises, fails on a plan in both ways (the call is not
// made; it is made and reported failed), and tells of callers that break the
// port's contract. It refuses to be a platform: everything is visible at once,
// and nothing outlives it.
package runnerfake

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/porttest/flaky"
)

// Program is what an image runs; it returns the exit code.
type Program func(Process) int

// Process is a machine, as its program sees it.
type Process struct {
	MachineID string
	Env       map[string]string
	// Terminated is closed by SIGTERM, Killed by SIGKILL. Nobody waits for a
	// program that was killed.
	Terminated, Killed <-chan struct{}
}

// Config is what a Runner needs; Programs and Clock are required.
type Config struct {
	// Programs are the images that there are.
	Programs map[string]Program
	Clock    clock.Clock
	// Plan tells the fate of calls: which are not made, which are made and
	// reported failed. nil makes them all.
	Plan flaky.Plan
	// Complain is told what a caller does that the port does not allow, as by
	// testing.T.Errorf. nil is silence.
	Complain func(format string, args ...any)
}

// Runner is the fake. It is safe for use by many goroutines.
type Runner struct {
	cfg      Config
	programs sync.WaitGroup

	mu       sync.Mutex
	calls    int
	next     int
	machines []*machine
	refusals map[string]error
	closed   bool
}

var _ port.Runner = (*Runner)(nil)

// New makes a Runner without machines. Close ends it.
func New(cfg Config) *Runner {
	if cfg.Complain == nil {
		cfg.Complain = func(string, ...any) {}
	}
	if cfg.Plan == nil {
		cfg.Plan = func(flaky.Call) flaky.Fate { return flaky.Applied }
	}
	return &Runner{cfg: cfg, refusals: map[string]error{}}
}

// Close kills all machines and waits for their programs, which have to notice.
func (r *Runner) Close() {
	r.mu.Lock()
	r.closed = true
	for _, m := range r.machines {
		m.destroy()
	}
	r.mu.Unlock()
	r.programs.Wait()
}

// Refuse makes the next launch under the name fail with err; no machine is
// made.
func (r *Runner) Refuse(name string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refusals[name] = err
}

// Occupy makes a live machine of that name that is not Sortie's.
func (r *Runner) Occupy(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.add(port.LaunchSpec{Name: name})
	m.foreign = true
	m.now.Phase = port.MachineRunning
}

// Machines tells all machines that were ever made, in their order.
func (r *Runner) Machines() []port.Machine {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]port.Machine, 0, len(r.machines))
	for _, m := range r.machines {
		all = append(all, m.look())
	}
	return all
}

// call makes one, as its fate is.
func (r *Runner) call(ctx context.Context, method string, write bool, do func() error) error {
	if _, ok := ctx.Deadline(); !ok {
		r.cfg.Complain("%s was called without a deadline", method)
	}
	r.mu.Lock()
	r.calls++
	fate := r.cfg.Plan(flaky.Call{Number: r.calls, Method: method, Write: write})
	r.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return fault.Wrap(err, fault.Unavailable, "%s: the context has ended", method)
	}
	if fate == flaky.Lost {
		return fault.New(fault.Unavailable, "%s: the call was lost", method)
	}
	err := do()
	if fate == flaky.Unsure && (err == nil || fault.Is(err, fault.Unavailable)) {
		return fault.New(fault.Unavailable, "%s: the answer was lost", method)
	}
	return err
}

// Launch makes the machine or adopts it; see orchestrator.Runner.
func (r *Runner) Launch(ctx context.Context, spec port.LaunchSpec) (made port.Machine, err error) {
	err = r.call(ctx, "Launch", true, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		made, err = r.launch(spec)
		return err
	})
	if err != nil {
		return port.Machine{}, err
	}
	return made, nil
}

var validName = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)

func (r *Runner) launch(spec port.LaunchSpec) (port.Machine, error) {
	if err := r.refusals[spec.Name]; err != nil {
		delete(r.refusals, spec.Name)
		return port.Machine{}, err
	}
	printable := !strings.ContainsFunc(spec.Owner.Tenant+spec.Owner.RunID, func(c rune) bool { return c < ' ' || c > '~' })
	if !validName.MatchString(spec.Name) || spec.Image == "" || spec.MemoryMB%256 != 0 || !printable || r.closed {
		return port.Machine{}, fault.New(fault.LaunchRefused, "cannot launch %q: the specification is not one of a machine", spec.Name)
	}
	if spec.Owner.RunID == "" || spec.Owner.Tenant == "" || spec.Owner.Attempt < 1 {
		r.cfg.Complain("Launch of %q: nobody owns the machine: %+v", spec.Name, spec.Owner)
	}
	for _, m := range r.machines {
		if m.spec.Name != spec.Name || m.gone() {
			continue
		}
		if m.foreign || m.spec.Owner != spec.Owner {
			return port.Machine{}, fault.New(fault.LaunchRefused, "the name %q belongs to another machine", spec.Name)
		}
		return m.look(), nil
	}
	program, ok := r.cfg.Programs[spec.Image]
	if !ok {
		return port.Machine{}, fault.New(fault.Image, "there is no image %q", spec.Image)
	}
	m := r.add(spec)
	made := m.look()
	r.programs.Go(func() { m.run(program) })
	return made, nil
}

func (r *Runner) add(spec port.LaunchSpec) *machine {
	r.next++
	m := newMachine(fmt.Sprintf("fake/%06d", r.next), spec, r.cfg.Clock)
	r.machines = append(r.machines, m)
	return m
}

func (r *Runner) find(id string) *machine {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.machines, func(m *machine) bool { return m.id == id })
	if i < 0 {
		return nil
	}
	return r.machines[i]
}

// Inspect looks one machine up; see orchestrator.Runner.
func (r *Runner) Inspect(ctx context.Context, id string) (now port.Machine, err error) {
	err = r.call(ctx, "Inspect", false, func() error {
		m := r.find(id)
		if m == nil {
			return fmt.Errorf("cannot look up machine %q: %w", id, port.ErrNotFound)
		}
		now = m.look()
		return nil
	})
	if err != nil {
		return port.Machine{}, err
	}
	return now, nil
}

// Wait waits for a phase; see orchestrator.Runner.
func (r *Runner) Wait(ctx context.Context, id string, phase port.MachinePhase, limit time.Duration) (now port.Machine, err error) {
	if limit < time.Second || limit > time.Minute || (phase != port.MachineRunning && phase != port.MachineGone) {
		r.cfg.Complain("Wait for %q for %v", phase, limit)
	}
	err = r.call(ctx, "Wait", false, func() error {
		m := r.find(id)
		if m == nil {
			return fmt.Errorf("cannot wait for machine %q: %w", id, port.ErrNotFound)
		}
		now, err = m.wait(ctx, phase, limit)
		return err
	})
	if err != nil {
		return port.Machine{}, err
	}
	return now, nil
}

// List tells the live machines; see orchestrator.Runner.
func (r *Runner) List(ctx context.Context) (found []port.Machine, err error) {
	err = r.call(ctx, "List", false, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, m := range r.machines {
			if now := m.look(); !m.foreign && now.Phase != port.MachineGone {
				found = append(found, now)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// Stop sends SIGTERM and, later, SIGKILL; see orchestrator.Runner.
func (r *Runner) Stop(ctx context.Context, id string, grace time.Duration) error {
	return r.call(ctx, "Stop", true, func() error {
		if m := r.find(id); m != nil {
			m.stop(grace)
		}
		return nil
	})
}

// Destroy kills the machine; see orchestrator.Runner.
func (r *Runner) Destroy(ctx context.Context, id string) error {
	return r.call(ctx, "Destroy", true, func() error {
		if m := r.find(id); m != nil {
			m.destroy()
		}
		return nil
	})
}
