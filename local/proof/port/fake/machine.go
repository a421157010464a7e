package fake

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// machine is one machine of a Runner.
type machine struct {
	id      string
	spec    port.LaunchSpec
	clock   clock.Clock
	foreign bool

	terminated, killed, ended chan struct{}

	mu        sync.Mutex
	now       port.MachineStatus
	requested bool
	signalled bool // terminated is closed
	dead      bool // killed is closed
	changed   chan struct{}
}

func newMachine(kind, id string, spec port.LaunchSpec, clock clock.Clock) *machine {
	region := spec.Region
	if region == "" {
		region = "local"
	}
	return &machine{
		id: id, spec: spec, clock: clock,
		terminated: make(chan struct{}), killed: make(chan struct{}), ended: make(chan struct{}), changed: make(chan struct{}),
		now: port.MachineStatus{
			Machine: port.Machine{Runner: kind, Region: region, ID: id}, Name: spec.Name, Phase: port.MachineCreating, Owner: spec.Owner,
			CreatedAt: clock.Now().UTC(),
		},
	}
}

func (m *machine) look() port.MachineStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

func (m *machine) gone() bool { return m.look().Phase == port.MachineGone }

// show changes the visible status and wakes waiting callers. The caller holds m.mu.
func (m *machine) show(change func(*port.MachineStatus)) {
	change(&m.now)
	close(m.changed)
	m.changed = make(chan struct{})
}

// run runs the program, unless the machine was stopped before. A killed machine is gone
// immediately, before its program returns.
func (m *machine) run(program Program) {
	m.mu.Lock()
	runs := m.now.Phase == port.MachineCreating && !m.signalled && !m.dead
	if runs {
		m.show(func(now *port.MachineStatus) { now.Phase = port.MachineRunning })
	}
	m.mu.Unlock()
	if !runs {
		m.end(nil)
		return
	}
	code := program(Process{
		MachineID: m.id, Env: maps.Clone(m.spec.Env), Terminated: m.terminated, Killed: m.killed,
	})
	m.end(&port.Exit{Code: code})
}

// end makes the machine gone, if it is not gone already.
func (m *machine) end(exit *port.Exit) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.now.Phase == port.MachineGone {
		return
	}
	if exit != nil {
		exit.At, exit.Requested = m.clock.Now().UTC(), m.requested
	}
	m.show(func(now *port.MachineStatus) { now.Phase, now.Exit = port.MachineGone, exit })
	close(m.ended)
}

func (m *machine) stop(grace time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.now.Phase == port.MachineGone || m.dead {
		return
	}
	m.requested = true
	if !m.signalled {
		m.signalled = true
		close(m.terminated)
	}
	if m.now.Phase == port.MachineRunning {
		m.show(func(now *port.MachineStatus) { now.Phase = port.MachineEnding })
	}
	over, stop := m.clock.NewTimer(grace)
	go func() {
		defer stop()
		select {
		case <-over:
			m.destroy()
		case <-m.ended:
		}
	}()
}

func (m *machine) destroy() {
	m.mu.Lock()
	if m.now.Phase == port.MachineGone || m.dead {
		m.mu.Unlock()
		return
	}
	m.requested, m.dead = true, true
	close(m.killed)
	var exit *port.Exit
	if m.now.Phase != port.MachineCreating {
		exit = &port.Exit{Code: 137, Signal: 9}
	}
	m.mu.Unlock()
	m.end(exit)
}

// wait returns the status when the machine has reached the phase or the limit has passed.
func (m *machine) wait(ctx context.Context, phase port.MachinePhase, limit time.Duration) (port.MachineStatus, error) {
	over, stop := m.clock.NewTimer(limit)
	defer stop()
	for {
		m.mu.Lock()
		now, changed := m.now, m.changed
		m.mu.Unlock()
		if now.Phase == port.MachineGone || now.StartFault != nil && phase == port.MachineRunning || (phase == port.MachineRunning && now.Phase != port.MachineCreating) {
			return now, nil
		}
		select {
		case <-changed:
		case <-over:
			return m.look(), nil
		case <-ctx.Done():
			return port.MachineStatus{}, fault.Wrap(ctx.Err(), fault.Unavailable, "the wait was cancelled")
		}
	}
}
