package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/local/sortie/fetch"
	"github.com/sortie-dev/sortie/shared/contract"
)

const (
	// outage is how long a server may be away while a run is waited for: a
	// restart, with some room.
	outage = time.Minute
	// drawnWait and plainWait are how long the server keeps a question. Progress
	// within a state is seen by asking, so it is short where that is drawn.
	drawnWait = 2 * time.Second
	plainWait = 10 * time.Second
)

// errTimeout is the cause of a --timeout.
var errTimeout = errors.New("the time given with --timeout is over")

// follower shows a run while it is waited for.
type follower struct {
	app      *app
	client   *client.Client
	progress *display.Progress // nil with --json
	events   []contract.TaskEvent
}

// newFollower begins to show a run; close ends it.
func (a *app) newFollower(c *client.Client) *follower {
	f := &follower{app: a, client: c}
	if !a.json {
		f.progress = display.NewProgress(a.screen, a.Clock)
	}
	return f
}

func (f *follower) close() {
	if f.progress != nil {
		f.progress.Close()
	}
}

func (f *follower) onRetry(err error) {
	if f.progress != nil {
		f.progress.Retrying(err)
	}
}

// wait returns when the run has ended well. Any other way out says how to go
// on. A timeout of 0 is none.
func (f *follower) wait(ctx context.Context, taskID string, timeout time.Duration) (contract.Status, error) {
	limited := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeoutCause(ctx, timeout, errTimeout)
		defer cancel()
	}
	wait := plainWait
	if f.progress != nil && f.app.screen.Draws() {
		wait = drawnWait
	}
	status, err := f.client.WithRetry(outage, f.onRetry).Follow(limited, taskID, wait,
		func(status contract.Status, events []contract.TaskEvent) {
			f.events = append(f.events, events...)
			if f.progress != nil {
				f.progress.Update(status, events)
			}
		})
	switch {
	case ctx.Err() != nil:
		return status, advised{error: ctx.Err(), code: ExitInterrupted, hint: goOn(taskID), taskID: taskID}
	case errors.Is(context.Cause(limited), errTimeout) && errors.Is(err, context.DeadlineExceeded):
		return status, stillRunning(taskID)
	case err != nil:
		if _, ok := errors.AsType[*client.Unreachable](err); ok {
			return status, advised{error: err, code: ExitUnreachable, hint: goOn(taskID), taskID: taskID}
		}
		return status, err
	case status.Status != contract.StatusSuccess:
		return status, runFailed(status)
	}
	return status, nil
}

// save downloads the output of a run that ended well. A target "-" is standard
// output. file is empty where the run left no output.
func (f *follower) save(ctx context.Context, status contract.Status, target string) (file string, size int64, err error) {
	if status.OutputKey == "" {
		f.app.note("The run left no output.")
		return "", 0, nil
	}
	job := fetch.Job{Client: f.client.WithRetry(outage, f.onRetry), TaskID: status.TaskID, Size: -1, OnRetry: f.onRetry}
	if status.OutputFileSize != nil {
		job.Size = *status.OutputFileSize
	}
	if f.progress != nil {
		job.Progress = f.progress.Downloading
	}
	if target == "-" {
		size, err = fetch.ToWriter(ctx, job, f.app.Stdout)
		file = "-"
	} else {
		file, size, err = fetch.ToFile(ctx, job, target)
	}
	if err == nil {
		return file, size, nil
	}
	again := fmt.Sprintf("repeat it with %q", "sortie download "+status.TaskID)
	if ctx.Err() != nil {
		return "", 0, advised{error: ctx.Err(), code: ExitInterrupted, hint: again, taskID: status.TaskID}
	}
	return "", 0, err
}
