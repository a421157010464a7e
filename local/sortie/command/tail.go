package command

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// tailWait limits the time between two polls of a run whose log has ended.
const tailWait = time.Second

// tail copies the standard output and standard error of a program to the command's own until
// the run has ended.
type tail struct {
	app    *app
	client *client.Client
	TaskID string

	at   client.LogPosition
	text bytes.Buffer // both streams
}

// follow waits for the end of the run. When ctx ends, it requests the cancellation of the run
// and continues to wait.
func (t *tail) follow(ctx context.Context) (contract.Status, error) {
	c := t.app.patient(t.client, t.TaskID)
	t.at.Attempt = 1
	err := t.show(ctx, c)
	if ctx.Err() != nil && err != nil {
		ctx = context.WithoutCancel(ctx)
		answer, lost := c.Cancel(ctx, t.TaskID, "interrupted")
		if lost != nil {
			return contract.Status{}, lost
		}
		t.app.Note("%s", answer.Message)
		err = t.show(ctx, c)
	}
	var status contract.Status
	if err == nil {
		status, err = c.Follow(ctx, t.TaskID, tailWait, func(contract.Status, []contract.TaskEvent) {})
	}
	if _, ok := errors.AsType[*client.Unreachable](err); ok {
		err = cli.Advised{Err: err, Code: cli.ExitUnreachable, Hint: "the run continues without this command; follow it with " + t.app.howToFollow(t.TaskID), TaskID: t.TaskID}
	}
	return status, err
}

// show prints the log from the current position until the run ends.
func (t *tail) show(ctx context.Context, c *client.Client) error {
	outputs := map[string]*display.Output{"stdout": display.NewOutput(t.app.Stdout), "stderr": display.NewOutput(t.app.Stderr)}
	err := c.FollowLog(ctx, t.TaskID, &t.at, func(line contract.LogLine) error {
		text := lineText(line)
		t.text.Write(text)
		to := outputs[line.Stream]
		if t.app.JSON || to == nil {
			return nil
		}
		return to.Print(text)
	})
	for _, to := range outputs {
		err = errors.Join(err, to.Close())
	}
	if p, ok := errors.AsType[*client.Problem](err); ok && p.Status == http.StatusNotFound && !p.Foreign {
		return nil // the run has ended without a log
	}
	return err
}
