package chaos

import (
	"context"
	"math/rand/v2"
	"syscall"
	"time"
)

// startFirst starts the stack for the first time, after injecting the faults that interrupt its
// start.
func (w *world) startFirst(ctx context.Context) error {
	for len(w.injections) > 0 && w.injections[0].target == killStart {
		if err := w.server.launch(); err != nil {
			return err
		}
		if !w.wait(ctx, w.injections[0].after) {
			return ctx.Err()
		}
		if err := w.inject(ctx, w.injections[0], nil); err != nil {
			return err
		}
		w.injections = w.injections[1:]
	}
	return w.server.up(ctx)
}

// injectAll injects all faults of the plan. The stack may be down afterwards.
func (w *world) injectAll(ctx context.Context) error {
	random := w.random(1)
	for _, b := range w.injections {
		if b.target != killStart {
			if err := w.server.up(ctx); err != nil {
				return err
			}
		} else if w.server.process == nil {
			if err := w.server.launch(); err != nil {
				return err
			}
		}
		if !w.wait(ctx, b.after) {
			return ctx.Err()
		}
		if err := w.inject(ctx, b, random); err != nil {
			return err
		}
		if b.target.stopsStack() && !w.wait(ctx, b.down) {
			return ctx.Err()
		}
	}
	return nil
}

// inject injects one fault.
func (w *world) inject(ctx context.Context, b injection, random *rand.Rand) error {
	var victim process
	if b.target.affectsMachine() || b.target == cancelRun {
		var err error
		victim, err = w.victim(ctx, b.target == killSupervisor || b.target == killAll, random)
		if err != nil {
			return err
		}
	}
	w.mu.Lock()
	w.outcome.Injections++
	w.mu.Unlock()
	w.note("%s (start %d)%s", b.target, w.server.starts, victim)
	if b.target.stopsStack() {
		w.stopped()
	}
	switch b.target {
	case stopStack:
		w.server.down(syscall.SIGTERM)
	case breakStop:
		if err := w.server.process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		w.wait(ctx, b.within)
		w.server.down(syscall.SIGKILL)
	case killWorker, killSupervisor:
		return w.killProcess(victim)
	case killMachine:
		return w.killMachine(victim)
	case freezeWorker:
		return w.freeze(ctx, victim, b.frozen)
	case cloneWorker:
		return w.clone(ctx, victim)
	case cancelRun:
		w.cancel(ctx, victim.task)
	default:
		if !b.first {
			if err := w.killProcess(victim); err != nil {
				return err
			}
		}
		w.server.down(syscall.SIGKILL)
		if b.first {
			return w.killProcess(victim)
		}
	}
	return nil
}

// stopped counts an end of the stack. It may cost each run an attempt that does not count: a
// stop ends the machines, and a kill cancels the starts of created machines.
func (w *world) stopped() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stops++
}

// victimWait is the polling interval for a running machine.
const victimWait = 25 * time.Millisecond

// victim picks a running process at random, or waits for one.
func (w *world) victim(ctx context.Context, supervisor bool, random *rand.Rand) (process, error) {
	for {
		now, err := findProcesses(w.folder)
		if err != nil {
			return process{}, err
		}
		list := now.workers
		if supervisor {
			list = now.supervisors
		}
		if len(list) > 0 {
			return list[random.IntN(len(list))], nil
		}
		if !w.wait(ctx, victimWait) {
			return process{}, ctx.Err()
		}
	}
}

// killProcess kills a machine's process and counts the injection. It does nothing if the
// process has ended.
func (w *world) killProcess(victim process) error {
	if victim.pid == 0 {
		return nil
	}
	injected, err := signalProcess(w.folder, victim.pid, syscall.SIGKILL)
	if !injected {
		w.note("  process has already ended")
		return err
	}
	w.countInjection(victim.task)
	return err
}
