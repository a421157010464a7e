package runs

import (
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/base/livelog"
	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// Documents encodes the content of events that do not belong to a commit of a run: resources,
// as clients see them, and output.
type Documents struct {
	Job   func(j job.Job) ([]byte, error)
	Pool  func(p platform.Pool) ([]byte, error)
	Model func(m catalog.Model) ([]byte, error)
	// Budget encodes the limit of an account.
	Budget func(a budget.Account) ([]byte, error)
	// Log returns the event of a chunk of a run's output that was accepted at a time.
	Log func(r run.Run, chunk livelog.Frame, at time.Time) events.Envelope
}
