package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/port"
)

// work is a worker's program; env is its environment.
type work func(env map[string]string)

// goroutines is a Runner whose machines are goroutines, so that only Sortie's own cost of a
// launch is measured. It drops a machine soon after its end.
type goroutines struct {
	work work
	now  func() time.Time
	// stay keeps machines alive after their program has returned.
	stay bool

	mu   sync.Mutex
	made map[string]*goroutine
}

// goroutine is a machine. Its name is the key of the map.
type goroutine struct {
	owner     port.MachineOwner
	createdAt time.Time
	exit      *port.Exit
	gone      chan struct{} // nil: never
}

func (one *goroutine) as(name string) port.MachineStatus {
	m := port.MachineStatus{
		Machine: port.Machine{Runner: "goroutine", ID: name}, Name: name, Phase: port.MachineRunning, Owner: one.owner, CreatedAt: one.createdAt, Exit: one.exit,
	}
	if m.Exit != nil {
		m.Phase = port.MachineGone
	}
	return m
}

// newGoroutines returns a runner whose machines run program.
func newGoroutines(program work, now func() time.Time) *goroutines {
	return &goroutines{work: program, now: now, made: map[string]*goroutine{}}
}

// Launch implements port.Runner.
func (g *goroutines) Launch(_ context.Context, spec port.LaunchSpec) (port.MachineStatus, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if one, ok := g.made[spec.Name]; ok {
		return one.as(spec.Name), nil
	}
	one := &goroutine{owner: spec.Owner, createdAt: g.now()}
	if !g.stay {
		one.gone = make(chan struct{})
	}
	g.made[spec.Name] = one
	go func() {
		g.work(spec.Env)
		if g.stay {
			return
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		one.exit = &port.Exit{At: g.now()}
		close(one.gone)
	}()
	return one.as(spec.Name), nil
}

func (g *goroutines) find(id string) (*goroutine, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if one, ok := g.made[id]; ok {
		return one, nil
	}
	return nil, fmt.Errorf("machine %s: %w", id, port.ErrNotFound)
}

// Inspect implements port.Runner.
func (g *goroutines) Inspect(_ context.Context, m port.Machine) (port.MachineStatus, error) {
	one, err := g.find(m.ID)
	if err != nil {
		return port.MachineStatus{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return one.as(m.ID), nil
}

// Wait implements port.Runner.
func (g *goroutines) Wait(ctx context.Context, m port.Machine, phase port.MachinePhase, limit time.Duration) (port.MachineStatus, error) {
	one, err := g.find(m.ID)
	if err != nil {
		return port.MachineStatus{}, err
	}
	if phase == port.MachineGone {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		select {
		case <-one.gone:
		case <-ctx.Done():
		}
	}
	return g.Inspect(ctx, m)
}

// List implements port.Runner.
func (g *goroutines) List(_ context.Context, each func(port.MachineStatus) bool) error {
	g.mu.Lock()
	var list []port.MachineStatus
	for name, one := range g.made {
		if one.exit == nil {
			list = append(list, one.as(name))
		}
	}
	g.mu.Unlock()
	for _, m := range list {
		if !each(m) {
			break
		}
	}
	return nil
}

// Stop implements port.Runner. It does nothing.
func (g *goroutines) Stop(context.Context, port.Machine, time.Duration) error { return nil }

// Destroy implements port.Runner. It does nothing: a goroutine ends by itself.
func (g *goroutines) Destroy(context.Context, port.Machine) error { return nil }
