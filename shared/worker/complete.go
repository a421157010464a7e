package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
)

// Result is what work comes to, besides its error.
type Result struct {
	// Output is what it left; nil is what UploadOutput has put, if anything.
	Output *contract.TaskOutput
	// Metrics are the work's own figures, anything that is a JSON object. The
	// contract's are added where it has none of that name.
	Metrics any
	// PartialProgress is any JSON that says how far cancelled work came.
	PartialProgress any
}

// askingTime is how long a worker that was told to stop waits to hear whether
// that is a cancel.
const askingTime = 3 * time.Second

// Complete says what the work came to: SUCCEEDED where failure is nil;
// CANCELLED where it is not and a cancel is wished; FAILED otherwise, with the
// category that Fail gave it. It gives the control plane's final state, which
// may be another.
//
// It tries until it is heard: see the package comment. The error wraps
// ErrUndelivered where that failed. Where nothing is to be reported, because
// nobody would hear it or because the machine is being stopped, the error is
// that cause and nothing is sent. A Complete may be repeated as it was; another
// outcome than the first is refused by the control plane.
func (t *Task) Complete(ctx context.Context, r Result, failure error) (finalState string, err error) {
	cause := context.Cause(t.ctx)
	if silent(cause) {
		return "", cause
	}
	if failure != nil && cause != nil && !errors.Is(cause, ErrDeadline) && !t.cancelWished(ctx) {
		if cause = context.Cause(t.ctx); !errors.Is(cause, ErrCancelled) {
			return "", cause // the end of the machine says enough
		}
	}
	if t.assignment.Envelope == nil {
		return t.callback(ctx, r, failure)
	}
	body := t.report(ctx, r, failure, cause)
	begun := t.options.Clock.Now()
	err = t.insist(ctx, t.patience(begun), "completed", func(ctx context.Context) error {
		a, err := t.call(ctx, "completed", body)
		if err != nil {
			return err
		}
		if a.ok() {
			var said contract.CompletedAnswer
			_ = json.Unmarshal(a.body, &said)
			finalState = cmp.Or(said.FinalState, body.Outcome)
			return nil
		}
		if cause := verdict(a); cause != nil {
			return cause
		}
		return a.err()
	})
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUndelivered, err)
	}
	return finalState, nil
}

// cancelWished says whether a cancel is wished. After SIGTERM it waits for the
// heartbeat that asks.
func (t *Task) cancelWished(ctx context.Context) bool {
	if t.assignment.Envelope != nil && t.terminated() {
		timer, stop := t.options.Clock.NewTimer(min(askingTime, t.pace.grace/10))
		defer stop()
		select {
		case <-t.heard:
		case <-timer:
		case <-ctx.Done():
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wished
}

// report is the body of completed. What the work gave for it and is not JSON is
// left out: the result matters more.
func (t *Task) report(ctx context.Context, r Result, failure, cause error) contract.TaskCompleted {
	body := contract.TaskCompleted{
		Attempt: t.assignment.Envelope.Attempt, WorkerID: t.options.WorkerID,
		Outcome: contract.OutcomeSucceeded, CompletedAt: t.options.Clock.Now().UTC(),
		Metrics: t.metrics(ctx, t.options.Usage(), r.Metrics),
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case failure == nil:
		body.Output = t.output(r.Output)
	case t.wished || errors.Is(cause, ErrCancelled):
		body.Outcome = contract.OutcomeCancelled
		body.CancelledDuringPhase = cmp.Or(t.phase, "processing")
		if r.PartialProgress != nil {
			text, err := json.Marshal(r.PartialProgress)
			if err != nil {
				t.options.Log.WarnContext(ctx, "the partial progress is not JSON and is left out", "why", err.Error())
			}
			body.PartialProgress = text
		}
	default:
		body.Outcome = contract.OutcomeFailed
		body.Error = taskError(failure, cause)
	}
	return body
}

// output is what the work says of it, with what was uploaded where it says no
// other place.
func (t *Task) output(said *contract.TaskOutput) *contract.TaskOutput {
	if said == nil || t.uploaded == nil || said.OutputPath != "" {
		return cmp.Or(said, t.uploaded)
	}
	both := *said
	both.OutputPath, both.ByteSize = t.uploaded.OutputPath, t.uploaded.ByteSize
	return &both
}

// metrics makes one object of the figures, of which the later win.
func (t *Task) metrics(ctx context.Context, figures ...any) json.RawMessage {
	all := map[string]json.RawMessage{}
	for _, part := range figures {
		text, err := json.Marshal(part)
		if err == nil && string(text) != "null" {
			err = json.Unmarshal(text, &all)
		}
		if err != nil {
			t.options.Log.WarnContext(ctx, "metrics are no JSON object and are left out", "why", err.Error())
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil // nothing that was read as JSON
	}
	return text
}

// callback says it in the export contract's words.
func (t *Task) callback(ctx context.Context, r Result, failure error) (string, error) {
	body := contract.Callback{TaskID: t.assignment.TaskID, BatchID: t.assignment.BatchID, Status: contract.StatusSuccess}
	outcome := contract.OutcomeSucceeded
	if failure != nil {
		body.Status, body.Error = contract.StatusError, cut(failure.Error(), maxMessage)
		outcome = contract.OutcomeFailed
	} else {
		if o := r.Output; o != nil {
			body.OutputKey, body.OutputFileName, body.OutputFileSize = o.OutputPath, cmp.Or(o.FileName, path.Base(o.OutputPath)), o.ByteSize
		}
		if r.Metrics != nil {
			body.Metrics = t.metrics(ctx, r.Metrics)
		}
	}
	err := t.insist(ctx, t.patience(t.options.Clock.Now()), "callback", func(ctx context.Context) error {
		a, err := t.post(ctx, t.assignment.CallbackURL, "", body, maxCall)
		if err != nil || a.ok() {
			return err
		}
		return a.err()
	})
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUndelivered, err)
	}
	return outcome, nil
}
