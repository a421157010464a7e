package worker

import (
	"context"
	"errors"
	"strings"
	"syscall"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Failure is an error with a category of the contract. Fail creates one.
type Failure struct {
	// Category is one of contract.Categories, such as
	// contract.CategoryUserCode. If it is empty, it is derived as Fail describes.
	Category string
	// Retryable overrides the category's retry rule; nil keeps the rule.
	Retryable *bool
	// StackTrace is reported with the error, cut at 16 KiB. It may be empty.
	StackTrace string
	// Err is the error. Its message is reported, cut at 2 KiB.
	Err error
}

// Fail returns err with a category and whether another attempt may succeed. The function of a
// worker may return it wrapped.
//
// An error without a Failure has the category USER_CODE. A full disk has INFRASTRUCTURE, and an
// exceeded context deadline TIMEOUT. Each has the category's retry rule.
func Fail(category string, retryable bool, err error) error {
	return &Failure{Category: category, Retryable: &retryable, Err: err}
}

// Error returns the message of Err.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns Err.
func (f *Failure) Unwrap() error { return f.Err }

// The control plane truncates texts at the same lengths.
const (
	maxMessage = 2 << 10
	maxTrace   = 16 << 10
	cutMark    = " [cut]"
)

// taskError converts an error to the error of completed.
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

// cut shortens text to at most limit bytes of UTF-8 and marks that it did.
func cut(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(cutMark)], "") + cutMark
}
