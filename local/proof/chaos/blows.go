package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
)

// strikeBoth kills a worker and what watches over it, whose end is the worker's
// too: the attempt may be lost where either of them was still there.
func (w *world) strikeBoth(victim process) error {
	now, err := find(w.folder)
	if err != nil {
		return err
	}
	victims := []process{victim}
	for _, p := range now.supervisors {
		if p.task == victim.task {
			victims = append(victims, p)
		}
	}
	hit := false
	for _, p := range slices.Backward(victims) {
		injected, err := strike(w.folder, p.pid, syscall.SIGKILL)
		if err != nil {
			return err
		}
		hit = hit || injected
	}
	if !hit {
		w.note("  it was gone")
		return nil
	}
	w.hit(victim.task)
	return nil
}

// freeze stops a worker for a while. It may be declared dead by then.
func (w *world) freeze(ctx context.Context, victim process, length time.Duration) error {
	injected, err := strike(w.folder, victim.pid, syscall.SIGSTOP)
	if !injected {
		w.note("  it was gone")
		return err
	}
	w.hit(victim.task)
	w.note("  it stands still for %s", length.Round(time.Millisecond))
	w.clients.Go(func() {
		w.wait(ctx, length)
		_, _ = strike(w.folder, victim.pid, syscall.SIGCONT)
	})
	return nil
}

// cloneLimit is how long a clone may take until it has understood that another
// is heard.
const cloneLimit = time.Minute

// clone runs a worker once more beside it, outside of any machine, so that only
// what Sortie answers can end it. Where it speaks first, the worker itself is
// refused, which costs its attempt.
func (w *world) clone(ctx context.Context, victim process) error {
	program, args, env, err := commandOf(victim.pid)
	if err != nil {
		w.note("  it was gone")
		return nil //nolint:nilerr // that is all it can mean
	}
	home, err := os.MkdirTemp("", "sortie-clone-")
	if err != nil {
		return err
	}
	limited, done := context.WithTimeout(ctx, cloneLimit)
	command := exec.CommandContext(limited, program, args...)
	command.Env, command.Dir = slices.Concat(env, []string{"HOME=" + home, "TMPDIR=" + home}), home
	if err := command.Start(); err != nil {
		done()
		return errors.Join(err, os.RemoveAll(home))
	}
	w.hit(victim.task)
	w.mu.Lock()
	w.cloned[victim.task] = true
	w.mu.Unlock()
	w.clients.Go(func() {
		defer done()
		err := command.Wait()
		w.note("the clone of %s ends: %v", victim.task, err)
		if limited.Err() != nil && ctx.Err() == nil {
			w.broken("a clone of %s's worker is still at work after %s", victim.task, cloneLimit)
		}
		if err := os.RemoveAll(home); err != nil {
			w.broken("a clone's folder is not removed: %v", err)
		}
	})
	return nil
}

// cancel repeats a cancel until it is answered, and remembers the answer.
func (w *world) cancel(ctx context.Context, task string) {
	if task == "" {
		return
	}
	w.mu.Lock()
	if _, before := w.cancelled[task]; !before {
		w.cancelled[task] = contract.CancelAnswer{}
	}
	w.mu.Unlock()
	w.clients.Go(func() {
		for {
			status, text, err := w.call(ctx, http.MethodPost, "/v1/tasks/"+task+"/cancel", `{"reason":"chaos"}`)
			var answer contract.CancelAnswer
			switch {
			case err != nil || status >= http.StatusInternalServerError:
				if !w.wait(ctx, againPause) {
					return
				}
				continue
			case status != http.StatusOK && status != http.StatusAccepted, json.Unmarshal(text, &answer) != nil:
				w.broken("the cancel of %s: %d %.300s", task, status, text)
			}
			w.note("the cancel of %s: %s, %s", task, answer.Result, answer.State)
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.cancelled[task].Result == "" { // the first one counts
				w.cancelled[task] = answer
			}
			return
		}
	})
}

// hit notes that an attempt of the task may be lost.
func (w *world) hit(task string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hits[task]++
}

// endsAs says whether a task that ended so has done well, and whether it may end
// so. A worker that stands still has to be killed when it is cancelled. While a
// cancel is not answered, all may be.
func (w *world) endsAs(task, state, code string) (well, fits bool) {
	w.mu.Lock()
	answer, wished := w.cancelled[task]
	w.mu.Unlock()
	switch {
	case state == "Completed":
		return true, !wished || answer.Result == "" || answer.Result == contract.CancelTooLate
	case !wished || answer.Result == contract.CancelTooLate:
		return false, false
	case state == "Failed":
		return false, code == "CANCEL_TIMEOUT"
	}
	return false, state == "Cancelled"
}
