package jobs

import (
	"context"
	"encoding/json"
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

// RunItem creates the run of an item of a polled sensor, with the rights of the client that stored
// the job. existing reports that the item has its run. Faults: those of Submit, InvalidRequest for
// an item that is too long for the templates of the job.
func (s *Definitions) RunItem(ctx context.Context, j job.Job, e sensor.Event) (existing bool, err error) {
	r := s.eventRun(j, e)
	r.CorrelationID = r.ID
	_, existing, err = s.createEvent(ctx, r)
	return existing, err
}

// watch stores the record of a polled sensor, before the job that is about to be stored: a sweep
// finds the sensor by its record, and keeps a record without a job for a while.
func (s *Jobs) watch(ctx context.Context, before *job.Job, j job.Job) error {
	place, _, polled := j.Definition.Sensor.Polled()
	if !polled {
		return nil
	}
	if before != nil {
		if known, _, _ := before.Definition.Sensor.Polled(); known == place {
			return nil
		}
	}
	ref := port.ResourceRef{Tenant: j.Tenant, Kind: sensor.Kind, ID: j.ID}
	for range port.CommitTries {
		stored, err := s.store.LoadResource(ctx, ref)
		var state sensor.State
		switch {
		case errors.Is(err, port.ErrNotFound):
			stored = port.Resource{ResourceRef: ref, CreatedAt: s.now()}
		case err == nil:
			err = json.Unmarshal(stored.Document, &state)
			fallthrough
		default:
			if err != nil {
				return fmt.Errorf("cannot read the sensor of the job: %w", err)
			}
		}
		stored.DueAt = s.now()
		if stored.Document, err = json.Marshal(state.Stored(place, j.UpdatedAt)); err != nil {
			return fmt.Errorf("cannot encode the sensor of the job: %w", err)
		}
		if err = s.store.WriteResources(ctx, []port.Resource{stored}, nil); err == nil {
			return nil
		}
		if !errors.Is(err, port.ErrConflict) {
			return fmt.Errorf("cannot store the sensor of the job: %w", err)
		}
	}
	return tooManyChanges()
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

// sensorState returns what the polled sensor of a job knows; nil without one.
func (s *Definitions) sensorState(ctx context.Context, j job.Job) (*sensor.State, error) {
	if _, _, polled := j.Definition.Sensor.Polled(); !polled {
		return nil, nil //nolint:nilnil // it has none
	}
	stored, err := s.store.LoadResource(ctx, port.ResourceRef{Tenant: j.Tenant, Kind: sensor.Kind, ID: j.ID})
	var state sensor.State
	if err == nil {
		err = json.Unmarshal(stored.Document, &state)
	}
	if err != nil && !errors.Is(err, port.ErrNotFound) {
		return nil, fmt.Errorf("cannot read the sensor of the job: %w", err)
	}
	return &state, nil
}
