package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/sortie-dev/sortie/local/twin/stacktest"
	"github.com/sortie-dev/sortie/shared/contract"
)

// inspect looks at what is left when all runs have ended: in the records, among
// the processes, and after another start in the bucket and on the disk.
func (w *world) inspect(ctx context.Context) error {
	tasks, err := w.tasks(ctx)
	if err != nil {
		return err
	}
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
		w.broken("%d keys were accepted, and there are %d runs", accepted, len(tasks))
	}
	w.awaitMachines(ctx)
	w.server.down(syscall.SIGTERM)
	if now, err := find(w.folder); err != nil || now.count() > 0 {
		w.broken("after the stop there are processes: %+v, %v", now, err)
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

// tasks reads every record there is.
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

// checkTask holds a record to what happened to its run.
func (w *world) checkTask(ctx context.Context, t contract.Task) {
	w.mu.Lock()
	o, known := w.accepted[t.TaskID]
	hits, stops := w.hits[t.TaskID], w.stops
	w.outcome.Runs++
	w.outcome.Attempts += t.Attempt
	w.mu.Unlock()
	if !known {
		w.broken("there is a run %s that nobody has ordered", t.TaskID)
		return
	}
	var page contract.TaskEvents
	err := w.get(ctx, "/v1/tasks/"+t.TaskID+"/events?limit=1000", &page)
	if err = errors.Join(err, stacktest.CheckEvents(page.Events)); err != nil {
		w.broken("%s: %v: %s", t.TaskID, err, told(page.Events))
	}
	code := ""
	if t.Fault != nil {
		code = t.Fault.Code
	}
	if well, fits := w.endsAs(t.TaskID, t.State, code); !fits || (t.Output != nil) != (well && o.keeps()) {
		w.broken("%s, %s, is %s, with the output %+v: %s", t.TaskID, o, t.State, t.Output, told(page.Events))
	}
	if t.FailedAttempts+t.FailedStarts > hits {
		w.broken("%s has paid for %d attempts and %d starts, and was struck %d times: %s",
			t.TaskID, t.FailedAttempts, t.FailedStarts, hits, told(page.Events))
	}
	if t.Attempt > 1+hits+stops {
		w.broken("%s has %d attempts after %d strikes and %d stops: %s", t.TaskID, t.Attempt, hits, stops, told(page.Events))
	}
}

// told are a run's events in a line each.
func told(events []contract.TaskEvent) string {
	var text strings.Builder
	for _, e := range events {
		fmt.Fprintf(&text, "\n\t%s %d %s in attempt %d, %s: %s", e.OccurredAt.Format("15:04:05.000"), e.Seq, e.Type, e.Attempt, e.State, e.Message)
	}
	return text.String()
}

// awaitMachines waits until no machine's process is left: a sweep or two.
func (w *world) awaitMachines(ctx context.Context) {
	const pause, tries = 50 * time.Millisecond, 200
	for range tries {
		if now, err := find(w.folder); err == nil && now.count() == 0 {
			return
		}
		w.wait(ctx, pause)
	}
	now, err := find(w.folder)
	w.broken("all runs have ended, and machines run: %+v, %v", now, err)
}
