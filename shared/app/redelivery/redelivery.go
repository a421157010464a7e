// Package redelivery sends the failed notifications of runs again.
package redelivery

import (
	"context"
	"errors"
	"fmt"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// Runs are the runs. All methods are safe for concurrent use.
type Runs interface {
	// Find returns a run of the caller's tenant by either of its ids. Fault: NotFound.
	Find(ctx context.Context, who port.Identity, id string) (run.Run, error)
	// Apply commits a fact about a run that was just read, and acts on it. It returns the newest
	// record.
	Apply(ctx context.Context, r run.Run, f run.Fact) (run.Run, error)
}

// Redeliveries sends failed notifications again. It is safe for concurrent use.
type Redeliveries struct{ runs Runs }

// New returns the redeliveries of runs.
func New(runs Runs) *Redeliveries { return &Redeliveries{runs} }

// Redeliver sends the failed notification of an action again, or all of a run if action is empty. A
// notification that is being sent is left alone, so the call may be repeated. A process that does not
// act for jobs leaves it to the next sweep. Faults: NotFound, and those of package redelivery of the
// domain.
func (s *Redeliveries) Redeliver(ctx context.Context, who port.Identity, id string, action spec.EndAction) (run.Run, error) {
	r, err := s.runs.Find(ctx, who, id)
	if err != nil {
		return run.Run{}, err
	}
	r, err = s.runs.Apply(ctx, r, run.Redelivered{Action: action})
	if errors.Is(err, port.ErrNotFound) {
		return run.Run{}, fault.New(fault.NotFound, "no such run, or it has expired")
	}
	if err != nil {
		return run.Run{}, fmt.Errorf("cannot send the notification again: %w", err)
	}
	return r, nil
}
