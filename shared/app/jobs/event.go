package jobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/sensor"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// RunEvent creates the run of an event that a client sends, with the rights of the client. existing
// reports that the event has its run. Faults: those of host.Programs.Check and Submit,
// InvalidRequest for an event that is too long for the templates of the job.
func (s *Definitions) RunEvent(ctx context.Context, j job.Job, e sensor.Event, by sensor.Request[port.Identity]) (r run.Run, existing bool, err error) {
	r = s.eventRun(j, e)
	if err := s.config.Host.Check(by.Identity, r.Work); err != nil {
		return run.Run{}, false, err
	}
	r.Exec = by.Identity.May(access.Exec)
	r.Workspace, r.CorrelationID = by.Identity.Workspace, by.CorrelationID
	r.CreatedBy, r.TraceParent = by.Identity.Actor(), by.TraceParent
	return s.createEvent(ctx, r)
}

// eventRun returns the run of an item.
func (s *Definitions) eventRun(j job.Job, e sensor.Event) run.Run {
	r := s.config.Host.NewRun(j, s.config.Policy, nil, nil, spec.Override{})
	r.ID, r.Trigger, r.Event = run.ItemID(j.ID, e.Key()), run.TriggerEvent, &e
	return r
}

// createEvent stores the run of an item, unless it exists.
func (s *Definitions) createEvent(ctx context.Context, r run.Run) (created run.Run, existing bool, err error) {
	stored, err := s.store.Load(ctx, r.Ref())
	if err == nil {
		return stored, true, nil
	}
	if !errors.Is(err, port.ErrNotFound) {
		return run.Run{}, false, fmt.Errorf("cannot read the run of an event: %w", err)
	}
	if problems := job.CheckExpanded(r); len(problems) > 0 {
		return run.Run{}, false, fault.Invalid("event", "too long for a template of the job: %s", problems[0].Problem)
	}
	created, existing, err = s.runs.Create(ctx, r, "", "")
	if !errors.Is(err, port.ErrConflict) {
		return created, existing, err
	}
	if stored, err = s.store.Load(ctx, r.Ref()); err != nil {
		return run.Run{}, false, fmt.Errorf("cannot read the run of an event: %w", err)
	}
	return stored, true, nil
}
