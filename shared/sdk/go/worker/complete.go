package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Result is the result of the work, besides its error. The zero value is valid.
type Result struct {
	// Output describes the output. If it is nil or has no OutputPath, the object
	// that UploadOutput stored is the output, if any.
	Output *contract.TaskOutput
	// Metrics are figures of the work: any value that encodes to a JSON object. The SDK adds
	// the figures of the contract (Options.Usage). If names are equal, those of Metrics take
	// precedence. Any other value is logged and omitted.
	Metrics any
	// PartialProgress describes the progress of cancelled work: any value that encodes to JSON.
	// It is reported only with outcome CANCELLED.
	PartialProgress any
	// Exit is the exit status of the program of a job. It is nil for workers that do not run a
	// program.
	Exit *contract.Exit
}

// cancelLookup limits how long Complete waits after SIGTERM for the answer that reports whether
// a cancel was requested.
const cancelLookup = 3 * time.Second

// Complete reports the outcome. It is SUCCEEDED if failure is nil, and CANCELLED if failure is
// not nil and a cancel was requested. Otherwise it is FAILED, with the category of Fail.
// Complete returns the final state that the control plane has decided, which may differ.
//
// Complete retries as the package comment describes. If it gives up, the error wraps
// ErrUndelivered. It sends nothing and returns the cause if the control plane no longer accepts
// reports, or if the machine is being stopped. Complete may be repeated with the same
// arguments. The control plane refuses a different outcome.
func (t *Task) Complete(ctx context.Context, r Result, failure error) (finalState string, err error) {
	cause := context.Cause(t.ctx)
	if abandoned(cause) {
		return "", cause
	}
	if failure != nil && cause != nil && !errors.Is(cause, ErrDeadline) && !t.isCancelRequested(ctx) {
		if cause = context.Cause(t.ctx); !errors.Is(cause, ErrCancelled) {
			return "", cause // the control plane sees the end of the machine
		}
	}
	if t.assignment.Envelope == nil {
		return t.callback(ctx, r, failure)
	}
	lost := t.flushed(ctx)
	body := t.report(ctx, r, failure, cause)
	if lost > 0 {
		body.Metrics = t.metrics(ctx, body.Metrics, map[string]int64{"outputBytesLost": lost})
	}
	now := t.options.Clock.Now()
	err = t.retry(ctx, t.resultUntil(now, t.retryUntil(now)), "completed", func(ctx context.Context) error {
		a, err := t.call(ctx, "completed", body)
		if err != nil {
			return err
		}
		if a.ok() {
			var accepted contract.CompletedAnswer
			_ = json.Unmarshal(a.body, &accepted)
			finalState = cmp.Or(accepted.FinalState, body.Outcome)
			return nil
		}
		if cause := causeOf(a); cause != nil {
			return cause
		}
		return a.err()
	})
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUndelivered, err)
	}
	return finalState, nil
}

// flushed sends the rest of the output and returns the number of lost bytes.
func (t *Task) flushed(ctx context.Context) (lost int64) {
	if t.sender == nil {
		return 0
	}
	if err := t.FlushOutput(ctx); err != nil {
		t.options.Log.WarnContext(ctx, "output was not sent", "why", err.Error())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.logUploaded {
		return 0
	}
	return t.flush.lost
}

// isCancelRequested reports whether a cancel was requested. After SIGTERM it
// waits for the answer to the heartbeat that the signal caused.
func (t *Task) isCancelRequested(ctx context.Context) bool {
	if t.assignment.Envelope != nil && t.terminated() {
		timer, stop := t.options.Clock.NewTimer(min(cancelLookup, t.timing.grace/10))
		defer stop()
		select {
		case <-t.answered:
		case <-timer:
		case <-ctx.Done():
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cancelRequested
}

// report builds the body of completed. It omits values that do not encode to JSON, so that they
// do not prevent the report.
func (t *Task) report(ctx context.Context, r Result, failure, cause error) contract.TaskCompleted {
	body := contract.TaskCompleted{
		Attempt: t.assignment.Envelope.Attempt, WorkerID: t.options.WorkerID,
		Outcome: contract.OutcomeSucceeded, CompletedAt: t.options.Clock.Now().UTC(), Exit: r.Exit,
		Metrics: t.metrics(ctx, t.options.Usage(), r.Metrics),
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case failure == nil:
		body.Output = t.output(r.Output)
	case t.cancelRequested || errors.Is(cause, ErrCancelled):
		body.Outcome = contract.OutcomeCancelled
		body.CancelledDuringPhase = cmp.Or(t.phase, "processing")
		if r.PartialProgress != nil {
			text, err := json.Marshal(r.PartialProgress)
			if err != nil {
				t.options.Log.WarnContext(ctx, "partial progress left out: not JSON", "why", err.Error())
			}
			body.PartialProgress = text
		}
	default:
		body.Outcome = contract.OutcomeFailed
		body.Error = taskError(failure, cause)
	}
	return body
}

// output merges the output of the Result with the uploaded object. It is called
// with the mutex held.
func (t *Task) output(given *contract.TaskOutput) *contract.TaskOutput {
	if given == nil || t.uploaded == nil || given.OutputPath != "" && given.OutputPath != t.uploaded.OutputPath {
		return cmp.Or(given, t.uploaded)
	}
	merged := *given
	merged.OutputPath, merged.ByteSize, merged.Digest = t.uploaded.OutputPath, t.uploaded.ByteSize, t.uploaded.Digest
	return &merged
}

// metrics merges figures into one JSON object. Later figures take precedence.
func (t *Task) metrics(ctx context.Context, figures ...any) json.RawMessage {
	all := map[string]json.RawMessage{}
	for _, part := range figures {
		text, err := json.Marshal(part)
		if err == nil && string(text) != "null" {
			err = json.Unmarshal(text, &all)
		}
		if err != nil {
			t.options.Log.WarnContext(ctx, "metrics left out: not a JSON object", "why", err.Error())
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil // cannot happen: every value was decoded from JSON
	}
	return text
}

// callback reports the outcome to CALLBACK_URL.
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
	err := t.retry(ctx, t.retryUntil(t.options.Clock.Now()), "callback", func(ctx context.Context) error {
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
