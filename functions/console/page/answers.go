package page

import (
	"errors"
	"net/http"
	"slices"
	"sync"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// ProblemOf returns the refusal of the API in an error; nil without one.
func ProblemOf(err error) *httpkit.Problem {
	p, _ := errors.AsType[*httpkit.Problem](err)
	return p
}

// Expired reports whether the API does not have the events after a cursor.
func Expired(err error) bool {
	p := ProblemOf(err)
	return p != nil && p.Body.Code == string(fault.CursorExpired)
}

// Unknown reports whether the API does not know a record.
func Unknown(err error) bool {
	p := ProblemOf(err)
	return p != nil && p.Body.Status == http.StatusNotFound
}

// Permitted returns nil for an operation that the reader may not call: its part of the page is
// empty.
func Permitted(err error) error {
	if p, ok := errors.AsType[*httpkit.Problem](err); ok && p.Body.Status == http.StatusForbidden {
		return nil
	}
	return err
}

// Together calls functions concurrently and returns the first error in their order.
func Together(functions ...func() error) error {
	errs := make([]error, len(functions))
	var all sync.WaitGroup
	for i, f := range functions {
		all.Go(func() { errs[i] = f() })
	}
	all.Wait()
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return errs[i]
	}
	return nil
}

// SeeOther is an error that redirects to a page below the console.
type SeeOther string

// Error implements error.
func (s SeeOther) Error() string { return "see " + string(s) }
