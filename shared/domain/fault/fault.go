// Package fault names the failures that Sortie reports.
//
// A Fault has a code (what happened), a category (WC-6), a blame (who has to act) and
// a retry rule. Every failure in a response, an event or a run's record is a Fault. Any
// other error is internal: it is logged, never shown, and reported as Internal.
//
// Faults are matched by code, with Is or errors.As, never by their text.
package fault

import (
	"errors"
	"fmt"
)

// Category is the worker contract's error category (WC-6). It is empty for most faults of
// requests.
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

// Retryable reports whether attempts that fail with this category are retried by default
// (WC-6).
func (c Category) Retryable() bool {
	return c == UserCode || c == Infrastructure || c == Timeout
}

// Blame is the party that must change something to fix the failure.
type Blame string

// The values of Blame.
const (
	BlameClient   Blame = "client"   // the request
	BlameWorker   Blame = "worker"   // the program in the machine
	BlamePlatform Blame = "platform" // the runner, the object store, the network
	BlameSortie   Blame = "sortie"   // this software
)

// Fault is a named failure. The zero Fault is invalid; use New.
type Fault struct {
	Code      Code     `json:"code"`
	Category  Category `json:"category,omitempty"`
	Blame     Blame    `json:"blame"`
	Retryable bool     `json:"retryable"`
	// Message explains to users what happened and, if useful, what to do.
	Message string `json:"message"`
	// Field is the invalid part of the request, in the request's spelling
	// ("options.maxDepth"), or empty.
	Field string `json:"field,omitempty"`

	cause error
}

// New returns a fault with a code. It formats the message like fmt.Sprintf. The code
// determines category, blame and retry rule. An unknown code gets those of Internal.
func New(code Code, format string, args ...any) *Fault {
	kind := code.kind()
	return &Fault{
		Code: code, Category: kind.category, Blame: kind.blame, Retryable: kind.retryable,
		Message: fmt.Sprintf(format, args...),
	}
}

// Wrap is New with a cause. The cause is for logs and errors.Is. It is not part of the
// message and is never sent to clients.
func Wrap(cause error, code Code, format string, args ...any) *Fault {
	f := New(code, format, args...)
	f.cause = cause
	return f
}

// Invalid returns an InvalidRequest for one field.
func Invalid(field, format string, args ...any) *Fault {
	f := New(InvalidRequest, format, args...)
	f.Field = field
	return f
}

// Error returns code, message and cause. It is for logs; responses contain only Message.
func (f *Fault) Error() string {
	text := string(f.Code) + ": " + f.Message
	if f.cause != nil {
		text += ": " + f.cause.Error()
	}
	return text
}

// Unwrap returns the cause, or nil.
func (f *Fault) Unwrap() error { return f.cause }

// Is reports whether err is or wraps a fault with this code.
func Is(err error, code Code) bool {
	f, ok := errors.AsType[*Fault](err)
	return ok && f.Code == code
}

// Of returns the fault that err is or wraps. It wraps any other error in an Internal fault
// with a generic message. Of(nil) returns nil.
func Of(err error) *Fault {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*Fault](err); ok {
		return f
	}
	return Wrap(err, Internal, "internal error; the logs have the details under the correlation id")
}
