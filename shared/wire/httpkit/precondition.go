package httpkit

import (
	"context"
	"fmt"
	"net/http"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// Precondition returns the precondition in If-Match and If-None-Match. The fault is
// InvalidRequest for an If-None-Match other than *.
func Precondition(r *http.Request) (change.Precondition, error) {
	var required change.Precondition
	if list, given := r.Header["If-Match"]; given {
		required.Present = true
		required.Match = func(tag string) bool { return len(list) == 1 && Matches(list[0], tag, false) }
	}
	switch values := r.Header["If-None-Match"]; {
	case len(values) == 0:
	case len(values) == 1 && values[0] == "*":
		required.Absent = true
	default:
		return required, fault.Invalid("If-None-Match", "malformed If-None-Match, want *")
	}
	return required, nil
}

// Remove deletes the resource with the id under the request's precondition, and writes the
// response. what names the kind of resource in errors.
func Remove(
	w http.ResponseWriter, r *http.Request, what, id string,
	remove func(ctx context.Context, who port.Identity, id string, required change.Precondition) error,
) error {
	required, err := Precondition(r)
	if err != nil {
		return err
	}
	if err := remove(r.Context(), CallerOf(r.Context()), id, required); err != nil {
		return fmt.Errorf("cannot delete the %s: %w", what, err)
	}
	return WriteRemoved(w)
}
