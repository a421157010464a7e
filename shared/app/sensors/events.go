package sensors

import (
	"context"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/sensor"
	"github.com/sortie-dev/sortie/shared/port"
)

// Runs has the jobs and creates runs for events. It is safe for concurrent use.
type Runs interface {
	// Job returns a job of the caller's tenant. Fault: NotFound.
	Job(ctx context.Context, who port.Identity, id string) (job.Job, error)
	// RunEvent creates the run of an event, with the rights of the caller. existing reports that it
	// exists. Faults: those of a requested run.
	RunEvent(ctx context.Context, j job.Job, e sensor.Event, by Request) (r run.Run, existing bool, err error)
}

// Request is the request of a client that sends events.
type Request = sensor.Request[port.Identity]

// Events takes the events that clients send.
type Events struct{ runs Runs }

// NewEvents returns Events.
func NewEvents(runs Runs) *Events { return &Events{runs} }

// Receipt is what follows from an event.
type Receipt struct {
	Event sensor.Event
	// Ignored: the filters of the job do not take the event. It has then no run.
	Ignored bool
	Run     run.Run
	// Existing: an earlier request created the run.
	Existing bool
}

// Receive creates the runs of events, in their order. It may be repeated: each event gets its run
// once. If it fails in the middle, the events before have their runs. Faults: NotFound,
// Unprocessable for a job that takes no events, JobPaused, and those of a requested run.
func (s *Events) Receive(ctx context.Context, jobID string, events []sensor.Event, by Request) ([]Receipt, error) {
	j, err := s.runs.Job(ctx, by.Identity, jobID)
	if err != nil {
		return nil, err
	}
	settings := j.Definition.Sensor
	switch {
	case settings == nil || settings.CloudEvent == nil:
		return nil, fault.New(fault.Unprocessable, "the job takes no events; its definition needs sensor.cloudEvent")
	case j.Paused:
		return nil, fault.New(fault.JobPaused, "the job is paused; send the event again when it is resumed")
	}
	receipts := make([]Receipt, len(events))
	for i, e := range events {
		receipts[i].Event = e
		if receipts[i].Ignored = !settings.CloudEvent.Takes(e); receipts[i].Ignored {
			continue
		}
		if receipts[i].Run, receipts[i].Existing, err = s.runs.RunEvent(ctx, j, e, by); err != nil {
			return nil, err
		}
	}
	return receipts, nil
}
