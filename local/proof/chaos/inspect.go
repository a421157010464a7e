package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sortie-dev/sortie/local/proof/stacktest"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// inspect checks the remains after all runs have ended: records, processes and, after a
// restart, bucket and disk.
func (w *world) inspect(ctx context.Context, delivered []string) error {
	tasks, err := w.tasks(ctx)
	if err != nil {
		return err
	}
	tasks = slices.DeleteFunc(tasks, func(t contract.Task) bool { return t.JobID != "" }) // endJobs has checked them
	outputs := map[string]int64{}
	for _, t := range tasks {
		w.checkTask(ctx, t)
		if t.Output != nil {
			outputs[t.Output.Key] = t.Output.Size
		}
	}
	w.mu.Lock()
	accepted := len(w.accepted)
	w.mu.Unlock()
	if len(tasks) != accepted {
		w.fail("got %[2]d runs for %[1]d accepted keys", accepted, len(tasks))
	}
	w.awaitMachines(ctx)
	w.server.down(syscall.SIGTERM)
	if now, err := findProcesses(w.folder); err != nil || now.count() > 0 {
		w.fail("got processes %+v after the stop (%v), want none", now, err)
	}
	if err := w.checkStream(ctx, delivered); err != nil {
		return err
	}
	if err := w.server.up(ctx); err != nil {
		return err
	}
	if err := w.checkBucket(ctx, outputs); err != nil {
		return err
	}
	w.server.down(syscall.SIGTERM)
	return w.checkDisk(outputs)
}

// tasks returns all records.
func (w *world) tasks(ctx context.Context) ([]contract.Task, error) {
	var all []contract.Task
	cursor := ""
	for {
		var page contract.TaskList
		if err := w.get(ctx, "/v1/tasks?limit=500&cursor="+url.QueryEscape(cursor), &page); err != nil {
			return nil, err
		}
		all = append(all, page.Tasks...)
		if cursor = page.NextCursor; cursor == "" {
			return all, nil
		}
	}
}

func (w *world) get(ctx context.Context, path string, into any) error {
	status, text, err := w.call(ctx, http.MethodGet, path, "")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%d %.300s", status, text)
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("GET %s: %w", path, err)
	}
	return nil
}

// checkTask checks a record against the faults injected into its run.
func (w *world) checkTask(ctx context.Context, t contract.Task) {
	w.mu.Lock()
	o, known := w.accepted[t.TaskID]
	hits, stops := w.hits[t.TaskID], w.stops
	w.outcome.Runs++
	w.outcome.Attempts += t.Attempt
	w.mu.Unlock()
	if !known {
		w.fail("run %s was not requested", t.TaskID)
		return
	}
	var page contract.TaskEvents
	err := w.get(ctx, "/v1/tasks/"+t.TaskID+"/events?limit=1000", &page)
	if err = errors.Join(err, stacktest.CheckEvents(page.Events)); err != nil {
		w.fail("%s: %v: %s", t.TaskID, err, formatEvents(page.Events))
	}
	code := ""
	if t.Fault != nil {
		code = t.Fault.Code
	}
	if succeeded, allowed := w.endsAs(t.TaskID, t.State, code); !allowed || (t.Output != nil) != (succeeded && o.hasOutput()) {
		w.fail("%s, %s: unexpected state %s with output %+v: %s", t.TaskID, o, t.State, t.Output, formatEvents(page.Events))
	}
	w.checkExit(t, page.Events, hits)
	if t.FailedAttempts+t.FailedStarts > hits {
		w.fail("%s has %d failed attempts and %d failed starts, want at most %d: %s",
			t.TaskID, t.FailedAttempts, t.FailedStarts, hits, formatEvents(page.Events))
	}
	if t.Attempt > 1+hits+stops {
		w.fail("%s has %d attempts after %d faults and %d stops: %s", t.TaskID, t.Attempt, hits, stops, formatEvents(page.Events))
	}
}

// checkExit checks the end of a cancelled run against the exit of its machine: only a killed
// worker is a CANCEL_TIMEOUT. An injected kill may precede the cancel request.
func (w *world) checkExit(t contract.Task, events []contract.TaskEvent, hits int) {
	killed := func(exit *contract.Exit) bool { return exit.Signal == int(syscall.SIGKILL) && !exit.OOM }
	for _, e := range events {
		if e.Type != "job.attempt_ended" || e.Exit == nil || e.Fault == nil {
			continue
		}
		if e.Fault.Code == "CANCEL_TIMEOUT" && !killed(e.Exit) || e.Fault.Code == "CANCELLED" && killed(e.Exit) && hits == 0 {
			w.fail("attempt %d of %s ended as %s with exit %+v", e.Attempt, t.TaskID, e.Fault.Code, *e.Exit)
		}
	}
	if t.Fault != nil && t.Fault.Code == "CANCEL_TIMEOUT" && t.Machine.Exit != nil && !killed(t.Machine.Exit) {
		w.fail("%s is a CANCEL_TIMEOUT with exit %+v, want one of SIGKILL", t.TaskID, *t.Machine.Exit)
	}
}

// formatEvents formats the events, one per line.
func formatEvents(events []contract.TaskEvent) string {
	var text strings.Builder
	for _, e := range events {
		fmt.Fprintf(&text, "\n\t%s %d %s in attempt %d, %s: %s", e.OccurredAt.Format("15:04:05.000"), e.Seq, e.Type, e.Attempt, e.State, e.Message)
	}
	return text.String()
}

// awaitMachines waits until no machine process is left, which takes one or two sweeps.
func (w *world) awaitMachines(ctx context.Context) {
	const pause, tries = 50 * time.Millisecond, 200
	for range tries {
		if now, err := findProcesses(w.folder); err == nil && now.count() == 0 {
			return
		}
		w.wait(ctx, pause)
	}
	now, err := findProcesses(w.folder)
	w.fail("got machine processes %+v after all runs ended (%v), want none", now, err)
}
