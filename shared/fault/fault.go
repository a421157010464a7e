// Package fault names the failures that Sortie tells others about.
//
// A Fault has a code (what happened), a category (WC-6),
// a blame (who has to act) and says whether trying again helps. Every failure
// that reaches a client, a worker, an event or a run's record is a Fault. An
// error that is none is ours, is logged, and is never shown: it becomes
// Internal.
//
// Faults are matched by code, with Is or errors.As, never by their words.
package fault

import (
	"errors"
	"fmt"
)

// Category is the worker contract's error category (WC-6). The zero value means
// that the fault is about a request, not about an attempt.
type Category string

// The six categories of the worker contract.
const (
	UserCode       Category = "USER_CODE"
	DataQuality    Category = "DATA_QUALITY"
	Infrastructure Category = "INFRASTRUCTURE"
	Configuration  Category = "CONFIGURATION"
	Timeout        Category = "TIMEOUT"
	CategoryCancel Category = "CANCELLED"
)

// Categories lists the six categories.
func Categories() []Category {
	return []Category{UserCode, DataQuality, Infrastructure, Configuration, Timeout, CategoryCancel}
}

// Retryable reports whether another attempt helps by default (WC-6).
func (c Category) Retryable() bool {
	return c == UserCode || c == Infrastructure || c == Timeout
}

// Blame says who has to change something before the failure goes away.
type Blame string

// Who is to blame for a fault.
const (
	BlameClient   Blame = "client"   // the request
	BlameWorker   Blame = "worker"   // the program in the machine
	BlamePlatform Blame = "platform" // the runner, the object store, the network
	BlameSortie   Blame = "sortie"   // this software
)

// Fault is one named failure. The zero Fault is not valid; New makes them.
type Fault struct {
	Code      Code     `json:"code"`
	Category  Category `json:"category,omitempty"`
	Blame     Blame    `json:"blame"`
	Retryable bool     `json:"retryable"`
	// Message is for people: what happened and, where it helps, what to do.
	Message string `json:"message"`
	// Field names the part of the request that is wrong, in the request's own
	// spelling ("options.maxDepth"). Empty where no field is.
	Field string `json:"field,omitempty"`

	cause error
}

// New makes the fault that code stands for. The message is formatted as by
// fmt.Sprintf; category, blame and retry rule come from the code's entry.
func New(code Code, format string, args ...any) *Fault {
	kind := code.kind()
	return &Fault{
		Code: code, Category: kind.category, Blame: kind.blame, Retryable: kind.retryable,
		Message: fmt.Sprintf(format, args...),
	}
}

// Wrap is New for a failure with a cause. The cause is for logs and errors.Is;
// it is not part of the message and never reaches a client.
func Wrap(cause error, code Code, format string, args ...any) *Fault {
	f := New(code, format, args...)
	f.cause = cause
	return f
}

// Invalid is an InvalidRequest about one field.
func Invalid(field, format string, args ...any) *Fault {
	f := New(InvalidRequest, format, args...)
	f.Field = field
	return f
}

// Error gives code and message, and the cause for the log.
func (f *Fault) Error() string {
	text := string(f.Code) + ": " + f.Message
	if f.cause != nil {
		text += ": " + f.cause.Error()
	}
	return text
}

// Unwrap gives the cause, nil where there is none.
func (f *Fault) Unwrap() error { return f.cause }

// Is says whether err is, or wraps, a fault with this code.
func Is(err error, code Code) bool {
	f, ok := errors.AsType[*Fault](err)
	return ok && f.Code == code
}

// Of gives the fault that err is or wraps. Any other error becomes Internal
// with a message that says nothing about it. Of(nil) is nil.
func Of(err error) *Fault {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*Fault](err); ok {
		return f
	}
	return Wrap(err, Internal, "something went wrong inside Sortie; the correlation id finds it in the logs")
}
