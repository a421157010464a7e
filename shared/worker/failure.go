package worker

import (
	"context"
	"errors"
	"strings"
	"syscall"

	"github.com/sortie-dev/sortie/shared/contract"
)

// Failure is an error that knows its category: see Fail.
type Failure struct {
	// Category is one of the contract's (contract.CategoryUserCode, ...).
	Category string
	// Retryable overrides the category's default; nil leaves it.
	Retryable *bool
	// StackTrace may be empty.
	StackTrace string
	// Err is what happened.
	Err error
}

// Fail gives an error its category and says whether another attempt may help.
// A worker's function returns it, also wrapped.
//
// An error without a category is USER_CODE; a full disk is INFRASTRUCTURE and
// an exceeded context deadline TIMEOUT, each with the category's own rule for
// retries.
func Fail(category string, retryable bool, err error) error {
	return &Failure{Category: category, Retryable: &retryable, Err: err}
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// How long texts may be: the control plane cuts there too.
const (
	maxMessage = 2 << 10
	maxTrace   = 16 << 10
	cutMark    = " [cut]"
)

// taskError is how an error is reported.
func taskError(err, cause error) *contract.TaskError {
	e := &contract.TaskError{Category: categoryOf(err, cause), Message: cut(err.Error(), maxMessage)}
	if failure, ok := errors.AsType[*Failure](err); ok {
		e.Retryable, e.StackTrace = failure.Retryable, cut(failure.StackTrace, maxTrace)
	}
	return e
}

func categoryOf(err, cause error) string {
	failure, ok := errors.AsType[*Failure](err)
	switch {
	case ok && failure.Category != "":
		return failure.Category
	case errors.Is(cause, ErrDeadline), errors.Is(err, context.DeadlineExceeded):
		return contract.CategoryTimeout
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.ENOMEM):
		return contract.CategoryInfrastructure
	}
	return contract.CategoryUserCode
}

// cut bounds a text and marks that it did.
func cut(text string, most int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(cutMark)], "") + cutMark
}
