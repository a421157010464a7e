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

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// killMachine kills a worker and its supervisor. If one of them was still running, the attempt
// can be lost.
func (w *world) killMachine(victim process) error {
	now, err := findProcesses(w.folder)
	if err != nil {
		return err
	}
	victims := []process{victim}
	for _, p := range now.supervisors {
		if p.task == victim.task {
			victims = append(victims, p)
		}
	}
	killed := false
	for _, p := range slices.Backward(victims) {
		injected, err := signalProcess(w.folder, p.pid, syscall.SIGKILL)
		if err != nil {
			return err
		}
		killed = killed || injected
	}
	if !killed {
		w.note("  process has already ended")
		return nil
	}
	w.countInjection(victim.task)
	return nil
}

// freeze stops a worker with SIGSTOP for length. Its attempt may time out during that time.
func (w *world) freeze(ctx context.Context, victim process, length time.Duration) error {
	injected, err := signalProcess(w.folder, victim.pid, syscall.SIGSTOP)
	if !injected {
		w.note("  process has already ended")
		return err
	}
	w.countInjection(victim.task)
	w.note("  frozen for %s", length.Round(time.Millisecond))
	w.clients.Go(func() {
		w.wait(ctx, length)
		_, _ = signalProcess(w.folder, victim.pid, syscall.SIGCONT)
	})
	return nil
}

// cloneLimit is the time in which a clone must be refused because another worker is in contact.
const cloneLimit = time.Minute

// clone starts a second process of a worker outside of any machine, so that only Sortie's
// answers can end it. If the clone calls first, the original worker is refused and loses its
// attempt.
func (w *world) clone(ctx context.Context, victim process) error {
	program, args, env, err := commandOf(victim.pid)
	if err != nil {
		w.note("  process has already ended")
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
	w.countInjection(victim.task)
	w.mu.Lock()
	w.cloned[victim.task] = true
	w.mu.Unlock()
	w.clients.Go(func() {
		defer done()
		err := command.Wait()
		w.note("clone of %s ended: %v", victim.task, err)
		if limited.Err() != nil && ctx.Err() == nil {
			w.fail("clone of %s's worker still works after %s", victim.task, cloneLimit)
		}
		if err := os.RemoveAll(home); err != nil {
			w.fail("cannot remove a clone's folder: %v", err)
		}
	})
	return nil
}

// cancel repeats a cancel request until it is answered, and records the answer.
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
				if !w.wait(ctx, retryPause) {
					return
				}
				continue
			case status != http.StatusOK && status != http.StatusAccepted, json.Unmarshal(text, &answer) != nil:
				w.fail("cancel of %s: got %d %.300s, want 200 or 202", task, status, text)
			}
			w.note("cancel of %s: %s, %s", task, answer.Result, answer.State)
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.cancelled[task].Result == "" { // the first answer counts
				w.cancelled[task] = answer
			}
			return
		}
	})
}

// countInjection records that an attempt of the task may be lost.
func (w *world) countInjection(task string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hits[task]++
}

// endsAs reports whether the end of a task is a success, and whether the faults permit it. A
// frozen worker must be killed when it is cancelled. Until the answer to a cancel request is
// known, every end is permitted.
func (w *world) endsAs(task, state, code string) (succeeded, allowed bool) {
	w.mu.Lock()
	answer, requested := w.cancelled[task]
	w.mu.Unlock()
	switch {
	case state == "Completed":
		return true, !requested || answer.Result == "" || answer.Result == contract.CancelTooLate
	case !requested || answer.Result == contract.CancelTooLate:
		return false, false
	case state == "Failed":
		return false, code == "CANCEL_TIMEOUT"
	}
	return false, state == "Cancelled"
}
