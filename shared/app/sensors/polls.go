package sensors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sortie-dev/sortie/shared/base/batch"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/sensor"
	"github.com/sortie-dev/sortie/shared/port"
)

// Store stores jobs and the records of sensors.
type Store interface {
	port.ResourceStore
	LoadJob(ctx context.Context, tenant, jobID string) (job.Job, error)
}

// ItemRuns creates runs for items. It is safe for concurrent use.
type ItemRuns interface {
	// RunItem creates the run of an item, with the rights of the client that stored the job. existing
	// reports that it exists. Faults: those of a requested run.
	RunItem(ctx context.Context, j job.Job, e sensor.Event) (existing bool, err error)
}

// Polls looks for the items of sensors in buckets and queues. Polls may overlap, also those of one
// sensor: an item has one run.
type Polls struct {
	store   Store
	runs    ItemRuns
	secrets port.Secrets
	buckets port.Buckets
	queues  port.Queues
	clock   clock.Clock
	log     *slog.Logger
	workers int
}

// NewPolls returns Polls. workers limits the sensors, and the items of each, that are handled
// concurrently; 0 and 1 handle them one by one, without a goroutine.
func NewPolls(
	store Store, runs ItemRuns, secrets port.Secrets, buckets port.Buckets, queues port.Queues, c clock.Clock, log *slog.Logger, workers int,
) *Polls {
	return &Polls{store, runs, secrets, buckets, queues, c, log, max(workers, 1)}
}

const (
	// sensorPage is how many sensors are read at a time, pollsAtOnce how many are polled
	// concurrently at most.
	sensorPage  = 100
	pollsAtOnce = 8
	// pollLimit bounds a poll. It ends earlier with ctx.
	pollLimit = 45 * time.Second
	// startLimit is how many runs a poll starts. startsAtOnce is how many it creates concurrently at
	// most.
	startLimit   = 1000
	startsAtOnce = 16
)

// PollDue polls the sensors that are due, again as long as one of them has more items than a poll may
// start. A sensor whose poll fails does not stop the others. It returns the errors of the store.
func (s *Polls) PollDue(ctx context.Context) error {
	for {
		more, err := s.pollOnce(ctx)
		if err != nil || !more || ctx.Err() != nil {
			return err
		}
	}
}

// pollOnce polls each sensor that is due once. more: one of them is due again.
func (s *Polls) pollOnce(ctx context.Context) (more bool, err error) {
	var failed []error
	var rest atomic.Bool
	for after := ""; ; {
		due, next, err := s.store.ResourcesDue(ctx, sensor.Kind, s.now(), after, sensorPage)
		if err != nil {
			return false, errors.Join(append(failed, fmt.Errorf("cannot read the sensors that are due: %w", err))...)
		}
		failed = append(failed, batch.Each(min(pollsAtOnce, s.workers), due, func(ref port.ResourceRef) error {
			if ctx.Err() != nil {
				return nil
			}
			within, cancel := context.WithTimeout(ctx, pollLimit)
			defer cancel()
			more, err := s.poll(within, ref)
			if more {
				rest.Store(true)
			}
			if err != nil && !errors.Is(err, port.ErrConflict) { // another process polls it
				return fmt.Errorf("cannot poll the sensor of job %s: %w", ref.ID, err)
			}
			return nil
		})...)
		if after = next; next == "" || ctx.Err() != nil {
			return rest.Load(), errors.Join(failed...)
		}
	}
}

func (s *Polls) now() time.Time { return clock.UTC(s.clock) }

// memory is the record of a sensor while it is polled.
type memory struct {
	stored port.Resource
	state  sensor.State
	seen   sensor.Seen
	// shards are the stored shards of seen.
	shards [sensor.Shards]port.Resource
}

// poll polls the sensor of a job, and stores what it knows then. An item has its run before it is
// remembered, so that a poll that is interrupted misses none. more: the sensor is due again.
func (s *Polls) poll(ctx context.Context, ref port.ResourceRef) (more bool, err error) {
	m, err := s.load(ctx, ref)
	if errors.Is(err, port.ErrNotFound) {
		return false, nil
	}
	if err != nil || m.stored.DueAt.After(s.now()) {
		return false, err
	}
	j, err := s.store.LoadJob(ctx, ref.Tenant, ref.ID)
	if err != nil && !errors.Is(err, port.ErrNotFound) {
		return false, fmt.Errorf("cannot read the job: %w", err)
	}
	place, every, polled := j.Definition.Sensor.Polled()
	if err != nil || !polled {
		if m.state.Abandoned(s.now()) {
			if err := s.loadSeen(ctx, m); err != nil {
				return false, err
			}
			return false, s.remove(ctx, m)
		}
		return false, s.save(ctx, m, s.now().Add(sensor.DefaultEvery))
	}
	if j.Paused {
		return false, s.save(ctx, m, s.now().Add(every))
	}
	var began bool
	m.state, began = m.state.Of(place, j.CreatedAt, j.UpdatedAt)
	if j.Definition.Sensor.Bucket != nil {
		if err := s.loadSeen(ctx, m); err != nil {
			return false, err
		}
	}
	if began {
		m.seen.Keep(nil)
	}
	known := m.seen.Len()
	more, err = s.take(ctx, j, m)
	more = more || err != nil && ctx.Err() != nil && m.seen.Len() > known // its time is over
	due := s.settle(ctx, j, m, more, every, err)
	saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveLimit)
	defer cancel()
	return more, s.save(saving, m, due)
}

// settle notes the end of a poll in the state, and returns when the next one is due. more: it is due
// at once. Otherwise err is the failure of the poll.
func (s *Polls) settle(ctx context.Context, j job.Job, m *memory, more bool, every time.Duration, err error) (due time.Time) {
	now := s.now()
	switch {
	case more:
		m.state = m.state.Waits()
		return now
	case err != nil:
		s.log.WarnContext(ctx, "a sensor failed; its poll is repeated", "job_id", j.ID, "failures", m.state.Failures+1, "error", err.Error())
		if m.state, due = m.state.Failed(reason(err), every, now); fault.Is(err, fault.AdmissionReject) { // the queue is full
			return now.Add(every)
		}
		return due
	}
	m.state, due = m.state.Polled(m.seen.Len(), every, now)
	return due
}

// reason returns what a client may read about a failed poll.
func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return "no answer in time"
	}
	return fault.Of(err).Message
}

// saveLimit bounds the write after a poll, which may have used up its time.
const saveLimit = 5 * time.Second

// take starts the runs of new items. more: there are more than startLimit.
func (s *Polls) take(ctx context.Context, j job.Job, m *memory) (more bool, err error) {
	settings := j.Definition.Sensor
	name := settings.SecretRef()
	text, err := s.secrets.Secret(ctx, j.Tenant, name)
	if errors.Is(err, port.ErrNotFound) {
		return false, fault.New(fault.Unavailable, "secretRef: no secret %q", name)
	}
	if err != nil {
		return false, fmt.Errorf("cannot read the credentials: %w", err)
	}
	by, ok := sensor.ParseCredentials(text)
	if !ok {
		return false, fault.New(fault.Unavailable, "secretRef: malformed credentials in %q, want ACCESS_KEY_ID:SECRET_ACCESS_KEY", name)
	}
	if settings.Bucket != nil {
		return s.takeObjects(ctx, j, by, m)
	}
	return s.takeMessages(ctx, j, by, m)
}

// start creates the run of an item. refused says why the item can never have one. malformed is the
// error of its event.
func (s *Polls) start(ctx context.Context, j job.Job, e sensor.Event, malformed error) (refused string, err error) {
	if malformed == nil {
		_, malformed = s.runs.RunItem(ctx, j, e)
	}
	if fault.Is(malformed, fault.InvalidRequest) || fault.Is(malformed, fault.TooLarge) {
		return fault.Of(malformed).Message, nil
	}
	return "", malformed
}
