package worker

import (
	"errors"
	"net/http"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// These errors are the causes with which the context of the work ends; see
// context.Cause. The errors of Start and Run wrap them.
var (
	// ErrCancelled means that a cancel of the task was requested. The work stops
	// taking new input, cleans up and returns. The outcome is CANCELLED.
	ErrCancelled = errors.New("the task is cancelled")
	// ErrExpired means that the control plane declared the attempt dead (410).
	// The work returns at once. Nothing more is reported.
	ErrExpired = errors.New("the attempt was declared dead")
	// ErrMismatch means that another attempt or another worker has the task
	// (409). The work returns at once. Nothing more is reported.
	ErrMismatch = errors.New("another attempt or worker has the task")
	// ErrEnded means that the task had ended before the worker started. Nothing
	// is reported.
	ErrEnded = errors.New("the task has already ended")
	// ErrTerminated means that the process received a signal to stop. The work
	// returns within the grace period.
	ErrTerminated = errors.New("the process was signalled to stop")
	// ErrDeadline means that the time of the attempt is over. The outcome is
	// FAILED with category TIMEOUT.
	ErrDeadline = errors.New("the attempt reached its deadline")
)

// ErrUndelivered means that the control plane did not accept the result. It is
// wrapped together with the reason.
var ErrUndelivered = errors.New("the result could not be delivered")

// causeOf returns the cause for an answer of the control plane, or nil if the answer does not
// end the work.
func causeOf(a answer) error {
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

// abandoned reports whether the control plane no longer accepts reports of the
// attempt after cause.
func abandoned(cause error) bool {
	return errors.Is(cause, ErrExpired) || errors.Is(cause, ErrMismatch) || errors.Is(cause, ErrEnded)
}
