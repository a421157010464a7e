package container

import (
	"context"
	"errors"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/retry"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// Stop implements port.Runner. It records the kill after the grace first, so that the next
// process repeats it if this one ends before. It does not use the engine's stop, which would
// block.
func (r *Runner) Stop(ctx context.Context, m port.Machine, grace time.Duration) error {
	return r.stop(ctx, m, grace, false)
}

func (r *Runner) stop(ctx context.Context, m port.Machine, grace time.Duration, host bool) error {
	const what = "stop the container"
	killAt := r.cfg.Clock.Now().Add(grace).UTC()
	running, e, err := r.noted(ctx, m, what, func(n *note) {
		n.Host = host && !n.Requested || n.Host
		n.Requested = true
		if n.KillAt.IsZero() || killAt.Before(n.KillAt) {
			n.KillAt = killAt
		}
	})
	if err != nil || !running {
		return err
	}
	signal := "SIGTERM"
	if grace <= 0 {
		signal = "SIGKILL"
	}
	if err := r.signal(ctx, e, m.ID, signal, what); err != nil {
		return err
	}
	r.killLater(m.ID, killAt)
	return nil
}

// Destroy implements port.Runner. The container is removed by Prune.
func (r *Runner) Destroy(ctx context.Context, m port.Machine) error {
	const what = "destroy the container"
	running, e, err := r.noted(ctx, m, what, func(n *note) { n.Requested = true })
	if err != nil || e == nil {
		return err
	}
	if running {
		if err := r.signal(ctx, e, m.ID, "SIGKILL", what); err != nil {
			return err
		}
	}
	if err := r.notes.change(m.ID, func(n *note) { n.DestroyedAt = r.cfg.Clock.Now().UTC() }); err != nil {
		return fault.Wrap(err, fault.Unavailable, "cannot %s: cannot write a note", what)
	}
	return nil
}

// noted changes the note of a container that has not ended, and reports whether it runs. It
// removes a container that was created and has never run. The returned engine is nil if it does
// not know the container.
func (r *Runner) noted(ctx context.Context, m port.Machine, what string, change func(*note)) (running bool, e *engine, err error) {
	if !located(m) {
		return false, nil, nil
	}
	if e, err = r.reach(ctx, what); err != nil {
		return false, nil, err
	}
	found, err := r.inspect(ctx, e, m.ID)
	if errdefs.IsNotFound(err) {
		return false, nil, nil
	}
	if err != nil {
		return false, nil, failure(ctx, err, what)
	}
	switch phase(found.State.Status) {
	case port.MachineGone:
		return false, e, nil
	case port.MachineCreating:
		if found.State.Status == container.StateCreated {
			return false, nil, r.removeUnstarted(ctx, e, m.ID, what)
		}
	}
	if err := r.notes.change(m.ID, change); err != nil {
		return false, nil, fault.Wrap(err, fault.Unavailable, "cannot %s: cannot write a note", what)
	}
	return true, e, nil
}

// removeUnstarted removes a container that has never run. A concurrent launch that
// starts it gets an error or a container that is killed.
func (r *Runner) removeUnstarted(ctx context.Context, e *engine, id, what string) error {
	_, err := e.api.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if err != nil && !errdefs.IsNotFound(err) {
		return failure(ctx, err, what)
	}
	return nil
}

// signal sends a signal to a running container. It returns no error if the container has ended
// meanwhile.
func (r *Runner) signal(ctx context.Context, e *engine, id, signal, what string) error {
	_, err := e.api.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: signal})
	if err == nil || errdefs.IsNotFound(err) {
		return nil
	}
	now, again := r.inspect(ctx, e, id)
	if errdefs.IsNotFound(again) || again == nil && !now.State.Running {
		return nil
	}
	return failure(ctx, err, what)
}

// killAgain is the delay before a kill that failed is repeated.
var killAgain = retry.Backoff{First: 100 * time.Millisecond, Most: 5 * time.Second, Multiplier: 2}

// killLater kills a container at a time, unless it has ended by then. A kill that fails is
// repeated.
func (r *Runner) killLater(id string, at time.Time) {
	if r.life.Err() != nil {
		return
	}
	r.tasks.Go(func() {
		if clock.Sleep(r.life, r.cfg.Clock, at.Sub(r.cfg.Clock.Now())) != nil {
			return // the next process repeats it
		}
		for n := 0; ; n++ {
			err := r.killNow(id)
			if err == nil || r.life.Err() != nil {
				return
			}
			r.cfg.Log.WarnContext(r.life, "cannot kill a container after its grace; it is repeated", "machine", id, "error", err.Error())
			if clock.Sleep(r.life, r.cfg.Clock, killAgain.Delay(n)) != nil {
				return
			}
		}
	})
}

// killNow kills a container unless it has ended, and removes KillAt from its note.
func (r *Runner) killNow(id string) error {
	ctx, cancel := context.WithTimeout(r.life, connectLimit)
	defer cancel()
	const what = "kill the container"
	e, err := r.reach(ctx, what)
	if err == nil {
		var found container.InspectResponse
		if found, err = r.inspect(ctx, e, id); err == nil && found.State.Running {
			err = r.signal(ctx, e, id, "SIGKILL", what)
		}
	}
	if err == nil || errdefs.IsNotFound(err) {
		err = r.notes.change(id, func(n *note) { n.KillAt = time.Time{} })
	}
	return err
}

// StopAll stops all containers because the host shuts down. It returns when they have ended. If
// ctx ends first, it kills them.
func (r *Runner) StopAll(ctx context.Context, grace time.Duration) error {
	if !r.found() {
		return nil
	}
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopAllLimit)
	defer cancel()
	if ctx.Err() != nil {
		grace = 0
	}
	var machines []port.Machine
	failed := []error{r.List(within, func(m port.MachineStatus) bool { machines = append(machines, m.Machine); return true })}
	for _, m := range machines {
		failed = append(failed, r.stop(within, m, grace, true))
	}
	for _, m := range machines {
		if _, err := r.Wait(ctx, m, port.MachineGone, grace+time.Second); err == nil || errors.Is(err, port.ErrNotFound) {
			continue
		}
		failed = append(failed, r.stop(within, m, 0, true))
	}
	return errors.Join(failed...)
}

// stopAllLimit limits the duration of StopAll when the engine does not respond.
const stopAllLimit = 30 * time.Second

// found reports whether an engine has answered.
func (r *Runner) found() bool {
	r.connecting <- struct{}{}
	defer func() { <-r.connecting }()
	return r.engine != nil
}
