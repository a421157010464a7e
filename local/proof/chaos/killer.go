package chaos

import (
	"context"
	"math/rand/v2"
	"syscall"
	"time"
)

// birth starts the stack for the first time; a blow may fall on that too.
func (w *world) birth(ctx context.Context) error {
	for len(w.injections) > 0 && w.injections[0].target == killStart {
		if err := w.server.launch(); err != nil {
			return err
		}
		if !w.wait(ctx, w.injections[0].after) {
			return ctx.Err()
		}
		if err := w.strike(ctx, w.injections[0], nil); err != nil {
			return err
		}
		w.injections = w.injections[1:]
	}
	return w.server.up(ctx)
}

// strikeAll carries out the plan. The stack may be down after it.
func (w *world) strikeAll(ctx context.Context) error {
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
		if err := w.strike(ctx, b, random); err != nil {
			return err
		}
		if b.target.downs() && !w.wait(ctx, b.down) {
			return ctx.Err()
		}
	}
	return nil
}

// strike carries out one blow.
func (w *world) strike(ctx context.Context, b injection, random *rand.Rand) error {
	var victim process
	if b.target.strikesMachine() || b.target == cancelRun {
		var err error
		victim, err = w.victim(ctx, b.target == killSupervisor || b.target == killAll, random)
		if err != nil {
			return err
		}
	}
	w.mu.Lock()
	w.outcome.Injections++
	w.mu.Unlock()
	w.note("%s (life %d)%s", b.target, w.server.lives, victim)
	switch b.target {
	case stopStack:
		w.stopped()
		w.server.down(syscall.SIGTERM)
	case breakStop:
		w.stopped()
		if err := w.server.process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		w.wait(ctx, b.within)
		w.server.down(syscall.SIGKILL)
	case killWorker, killSupervisor:
		return w.strikeMachine(victim)
	case killMachine:
		return w.strikeBoth(victim)
	case freezeWorker:
		return w.freeze(ctx, victim, b.frozen)
	case cloneWorker:
		return w.clone(ctx, victim)
	case cancelRun:
		w.cancel(ctx, victim.task)
	default:
		if !b.first {
			if err := w.strikeMachine(victim); err != nil {
				return err
			}
		}
		w.server.down(syscall.SIGKILL)
		if b.first {
			return w.strikeMachine(victim)
		}
	}
	return nil
}

func (w *world) stopped() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stops++
}

// victimWait is how long a machine to be struck is awaited.
const victimWait = 25 * time.Millisecond

// victim picks one of the processes that run; there will be one, for clients
// are at work.
func (w *world) victim(ctx context.Context, supervisor bool, random *rand.Rand) (process, error) {
	for {
		now, err := find(w.folder)
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

// strikeMachine kills a machine's process, and remembers whose attempt that
// may cost. A victim that has ended in the meantime costs none.
func (w *world) strikeMachine(victim process) error {
	if victim.pid == 0 {
		return nil
	}
	injected, err := strike(w.folder, victim.pid, syscall.SIGKILL)
	if !injected {
		w.note("  it was gone")
		return err
	}
	w.hit(victim.task)
	return err
}
