package container_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// kill ends the containers without their Runner, like an engine that is killed.
func (e *engine) kill() {
	e.mu.Lock()
	for _, g := range e.all {
		g.signal("SIGKILL")
	}
	e.mu.Unlock()
	e.programs.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, g := range e.all {
		g.code = 137
	}
}

func TestEngineThatIsAway(t *testing.T) {
	t.Parallel()
	engineThatIsAway(t, setup(t), image)
}

// engineThatIsAway has a machine while no call reaches its engine. The machine is not gone, and
// is found when the engine is back.
func engineThatIsAway(t *testing.T, p platform, image string) {
	t.Helper()
	s, late := spec("r-away", "rest"), spec("r-late", "rest")
	s.Image, late.Image = image, image
	m := launch(t, p.runner, s)
	p.proxy.cut(true)
	for call, do := range map[string]func(context.Context) error{
		"Inspect": func(ctx context.Context) error { _, err := p.runner.Inspect(ctx, m.Machine); return err },
		"Wait": func(ctx context.Context) error {
			_, err := p.runner.Wait(ctx, m.Machine, port.MachineGone, time.Second)
			return err
		},
		"List": func(ctx context.Context) error {
			return p.runner.List(ctx, func(port.MachineStatus) bool { return true })
		},
		"Stop":    func(ctx context.Context) error { return p.runner.Stop(ctx, m.Machine, time.Minute) },
		"Destroy": func(ctx context.Context) error { return p.runner.Destroy(ctx, m.Machine) },
		"Launch":  func(ctx context.Context) error { _, err := p.runner.Launch(ctx, late); return err },
		"Logs":    func(ctx context.Context) error { _, err := p.runner.Logs(ctx, m.Machine); return err },
	} {
		if err := do(limited(t)); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: got %v without an engine, want %s", call, err, fault.Unavailable)
		}
	}
	p.proxy.cut(false)
	if now, err := p.runner.Inspect(limited(t), m.Machine); err != nil || now.Phase != port.MachineRunning {
		t.Errorf("got %+v, %v, want the running machine", now, err)
	}
	if err := p.runner.Stop(limited(t), m.Machine, time.Minute); err != nil {
		t.Fatal(err)
	}
	if exit := gone(t, p.runner, m.Machine); exit.Code != 0 || !exit.Requested {
		t.Errorf("got exit %+v, want one on request", exit)
	}
}

// TestEngineThatIsKilled kills the engine with its containers. It shows them after its restart.
func TestEngineThatIsKilled(t *testing.T) {
	t.Parallel()
	p := setup(t)
	m := launch(t, p.runner, spec("r-killed", "rest"))
	p.proxy.cut(true)
	p.engine.kill()
	if _, err := p.runner.Inspect(limited(t), m.Machine); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v without an engine, want %s", err, fault.Unavailable)
	}
	p.proxy.cut(false)
	if exit := gone(t, p.runner, m.Machine); exit.Code != 137 || exit.Requested || exit.OOM {
		t.Errorf("got exit %+v, want a kill that was not on request", exit)
	}
	if again := launch(t, p.runner, spec("r-killed", "rest")); again.ID != m.ID {
		t.Errorf("got container %s after %s, want the one whose program has run", again.ID, m.ID)
	}
}

func TestContainerRemovedByHand(t *testing.T) {
	t.Parallel()
	p := setup(t)
	containerRemovedByHand(t, p, image, func(id string) {
		p.engine.mu.Lock()
		defer p.engine.mu.Unlock()
		p.engine.remove(id)
	})
}

// containerRemovedByHand removes a running container without its Runner.
func containerRemovedByHand(t *testing.T, p platform, image string, remove func(id string)) {
	t.Helper()
	s := spec("r-removed", "rest")
	s.Image = image
	m := launch(t, p.runner, s)
	remove(m.ID)
	if _, err := p.runner.Inspect(limited(t), m.Machine); !errors.Is(err, port.ErrNotFound) {
		t.Errorf("Inspect: got %v, want ErrNotFound", err)
	}
	if _, err := p.runner.Wait(limited(t), m.Machine, port.MachineGone, time.Minute); !errors.Is(err, port.ErrNotFound) {
		t.Errorf("Wait: got %v, want ErrNotFound", err)
	}
	if err := errors.Join(p.runner.Stop(limited(t), m.Machine, time.Minute), p.runner.Destroy(limited(t), m.Machine)); err != nil {
		t.Errorf("Stop and Destroy: got %v, want no error", err)
	}
	if err := p.runner.List(limited(t), func(found port.MachineStatus) bool {
		t.Errorf("got %s in the list, want no machine", found.Name)
		return true
	}); err != nil {
		t.Error(err)
	}
	s.Owner.Attempt, s.Name = 2, "r-removed-2"
	if next := launch(t, p.runner, s); next.Phase != port.MachineRunning {
		t.Errorf("got %+v, want the machine of the next attempt", next)
	}
}
