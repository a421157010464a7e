package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/local/sortie/fetch"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

const (
	// outage is the time for which a waiting command retries an unreachable server. It covers a
	// restart.
	outage = time.Minute
	// drawnWait and plainWait limit the server's delay of a status. Progress within a state
	// arrives only with the next status, so the wait is short if progress is drawn.
	drawnWait = 2 * time.Second
	plainWait = 10 * time.Second
)

// errTimeout is the cause of a context that ended by --timeout.
var errTimeout = errors.New("the time of --timeout is over")

// follower shows a run while a command waits for it.
type follower struct {
	app      *app
	client   *client.Client
	progress *display.Progress // nil with --json
	events   []contract.TaskEvent
}

// newFollower starts the display of a run. The caller closes it.
func (a *app) newFollower(c *client.Client) *follower {
	f := &follower{app: a, client: c}
	if !a.JSON {
		f.progress = display.NewProgress(a.Screen, a.Clock)
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

// wait waits for the run and returns an error unless it succeeds. A timeout of 0 means no
// limit.
func (f *follower) wait(ctx context.Context, taskID string, timeout time.Duration) (contract.Status, error) {
	limited := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeoutCause(ctx, timeout, errTimeout)
		defer cancel()
	}
	wait := plainWait
	if f.progress != nil && f.app.Screen.Draws() {
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
		return status, cli.Advised{Err: ctx.Err(), Code: cli.ExitInterrupted, Hint: f.app.HowToContinue(taskID), TaskID: taskID}
	case errors.Is(context.Cause(limited), errTimeout) && errors.Is(err, context.DeadlineExceeded):
		return status, f.app.StillRunning(taskID)
	case err != nil:
		if _, ok := errors.AsType[*client.Unreachable](err); ok {
			return status, cli.Advised{Err: err, Code: cli.ExitUnreachable, Hint: f.app.HowToContinue(taskID), TaskID: taskID}
		}
		return status, err
	case status.Status != contract.StatusSuccess:
		return status, f.app.RunEnded(status)
	}
	return status, nil
}

// save downloads the output of a successful run. It returns an empty file name if the run has
// no output.
func (f *follower) save(ctx context.Context, status contract.Status, to target) (file string, size int64, err error) {
	if status.OutputKey == "" {
		f.app.Note("The run has no output.")
		return "", 0, nil
	}
	job := fetch.Job{
		Client: f.client.WithRetry(outage, f.onRetry), TaskID: status.TaskID, Format: status.Format, Force: to.force,
		Size: -1, OnRetry: f.onRetry,
	}
	if status.OutputFileSize != nil {
		job.Size = *status.OutputFileSize
	}
	if f.progress != nil {
		job.Progress = f.progress.Downloading
	}
	if to.path == "-" {
		size, err = fetch.ToWriter(ctx, job, f.app.Stdout)
		file = "-"
	} else {
		file, size, err = fetch.ToFile(ctx, job, to.path)
	}
	switch {
	case err == nil:
		return file, size, nil
	case ctx.Err() != nil:
		hint := fmt.Sprintf("%q repeats the download", f.app.Name+" download "+status.TaskID)
		return "", 0, cli.Advised{Err: ctx.Err(), Code: cli.ExitInterrupted, Hint: hint, TaskID: status.TaskID}
	case errors.Is(err, fetch.ErrExists):
		hint := fmt.Sprintf("choose another file with -o, or replace it with %q", f.app.Name+" download "+status.TaskID+" --force")
		return "", 0, cli.Advised{Err: err, Code: cli.ExitFailed, Hint: hint, TaskID: status.TaskID}
	}
	return "", 0, err
}
