package worker

import (
	"errors"
	"net/http"

	"github.com/sortie-dev/sortie/shared/contract"
)

// The causes of a context that ended: see context.Cause. An error that wraps
// one of them is what Start and Run return for it.
var (
	// ErrCancelled: somebody wants the task to end. Stop taking on work, clean up
	// and return; the outcome is CANCELLED.
	ErrCancelled = errors.New("the task is cancelled")
	// ErrExpired: the attempt was declared dead (410). Return at once; nothing
	// more is reported.
	ErrExpired = errors.New("the attempt was declared dead")
	// ErrMismatch: another attempt or another worker has the task (409). Return at
	// once; nothing more is reported.
	ErrMismatch = errors.New("another attempt or worker has the task")
	// ErrEnded: the task had its end before the worker began. Nothing is reported.
	ErrEnded = errors.New("the task has ended already")
	// ErrTerminated: the process is asked to stop. Return within the grace period.
	ErrTerminated = errors.New("the process was asked to stop")
	// ErrDeadline: the attempt's time is up. The outcome is FAILED, TIMEOUT.
	ErrDeadline = errors.New("the attempt reached its deadline")
)

// ErrUndelivered: the result is known here alone. It is wrapped with the reason.
var ErrUndelivered = errors.New("the result could not be delivered")

// verdict is the cause that an answer of the control plane is; nil where it is
// none.
func verdict(a answer) error {
	switch a.status {
	case http.StatusGone:
		return ErrExpired
	case http.StatusConflict:
		p := a.problem()
		switch {
		case p.Error != contract.ErrorTaskAlreadyTerminal:
			return ErrMismatch
		case p.State == contract.OutcomeCancelled:
			return ErrCancelled
		}
		return ErrEnded
	}
	return nil
}

// silent says whether nothing is to be reported after a cause: nobody would
// hear it.
func silent(cause error) bool {
	return errors.Is(cause, ErrExpired) || errors.Is(cause, ErrMismatch) || errors.Is(cause, ErrEnded)
}
