package command

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/contract"
)

// tailWait is the longest time between two looks at a log.
const tailWait = time.Second

// tail shows what a program writes until its run has ended.
type tail struct {
	app    *app
	client *client.Client
	taskID string

	attempt int    // whose log is shown
	shown   []byte // of the log so far
	text    bytes.Buffer
	failed  error
}

// follow waits for the end of the run. When ctx ends, it requests the cancellation of
// the run and continues.
func (t *tail) follow(ctx context.Context) (contract.Status, error) {
	c := t.client.WithRetry(outage, nil)
	update := func(ctx context.Context) func(contract.Status, []contract.TaskEvent) {
		return func(status contract.Status, _ []contract.TaskEvent) {
			if t.failed == nil {
				t.failed = t.update(ctx, c, status)
			}
		}
	}
	status, err := c.Follow(ctx, t.taskID, tailWait, update(ctx))
	if ctx.Err() != nil && (err != nil || status.Status == contract.StatusProcessing) {
		ctx = context.WithoutCancel(ctx)
		answer, lost := c.Cancel(ctx, t.taskID, "interrupted")
		if lost != nil {
			return status, lost
		}
		t.app.note("%s", answer.Message)
		status, err = c.Follow(ctx, t.taskID, tailWait, update(ctx))
	}
	if err == nil {
		err = t.failed
	}
	if _, ok := errors.AsType[*client.Unreachable](err); ok {
		err = advised{error: err, code: ExitUnreachable, hint: t.app.howToContinue(t.taskID), taskID: t.taskID}
	}
	return status, err
}

// update shows what was written since the last look: the rest of earlier attempts, then
// the current one.
func (t *tail) update(ctx context.Context, c *client.Client, status contract.Status) error {
	for t.attempt = max(t.attempt, 1); t.attempt <= status.Attempt; t.attempt++ {
		log, err := c.Log(ctx, t.taskID, t.attempt)
		p, refused := errors.AsType[*client.Problem](err)
		switch {
		case refused && p.Status == http.StatusNotFound: // it has none, or not yet
		case ctx.Err() != nil:
			return nil //nolint:nilerr // interrupted: the next look shows the rest
		case err != nil:
			return err
		default:
			if err := t.show(added(t.shown, log.Text)); err != nil {
				return err
			}
			t.shown = log.Text
		}
		if t.attempt == status.Attempt {
			return nil
		}
		t.shown = nil
	}
	return nil
}

func (t *tail) show(text []byte) error {
	t.text.Write(text)
	if t.app.json {
		return nil
	}
	_, err := t.app.Stdout.Write(display.Escape(text))
	return err
}
