package orchestrator

import (
	"context"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/budget"
	"github.com/sortie-dev/sortie/shared/catalog"
	"github.com/sortie-dev/sortie/shared/job"
	"github.com/sortie-dev/sortie/shared/livelog"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// Documents encodes the content of events that do not belong to a commit of a run: resources,
// as clients see them, and output.
type Documents struct {
	Job   func(j job.Job) ([]byte, error)
	Pool  func(p run.Pool) ([]byte, error)
	Model func(m catalog.Model) ([]byte, error)
	// Budget encodes the limit of an account.
	Budget func(a budget.Account) ([]byte, error)
	// Log returns the event of a chunk of a run's output that was accepted at a time.
	Log func(r run.Run, chunk livelog.Frame, at time.Time) events.Envelope
}

// note returns the event of a change of a job. before is nil for a new job, after for a deleted
// one.
func (s *Jobs) note(ctx context.Context, who port.Identity, before, after *job.Job) (note port.Note, err error) {
	of := after
	if after == nil {
		of = before
	}
	c := change.Resource{
		Tenant: of.Tenant, Workspace: of.Workspace, Kind: "job", ID: of.ID,
		Version: of.Version, Revision: of.Revision + 1, Created: of.CreatedAt,
	}
	if before != nil {
		c.Before, err = s.document(*before)
	}
	if err == nil && after != nil {
		c.After, err = s.document(*after)
	}
	if err != nil {
		return port.Note{}, fmt.Errorf("cannot encode job %s: %w", of.ID, err)
	}
	return c.Note(ctx, who.Actor(), s.now())
}
