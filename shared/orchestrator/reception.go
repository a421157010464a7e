package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// defaultSweepInterval applies if the configuration has none.
const defaultSweepInterval = time.Minute

// Reception is the record of whether workers can reach the API. No worker is
// declared dead for a silence that may be caused by this side.
type Reception struct {
	*Records
	interval time.Duration
}

// NewReception returns the reception record of a store.
func NewReception(records *Records, config Config) *Reception {
	interval := config.SweepInterval
	if interval == 0 {
		interval = defaultSweepInterval
	}
	return &Reception{records, interval}
}

// Probe calls the API at its public address, as a worker does. An error means that
// workers cannot reach it.
type Probe func(ctx context.Context) error

// SelfProbe is the Probe of a process that serves the API itself: its call of
// RecordReception is the proof.
func SelfProbe(context.Context) error { return nil }

// gap is the age above which the record is out of date: a sweep was missed. It is
// less than two intervals because a schedule may be early.
func (s *Reception) gap() time.Duration { return s.interval * 7 / 4 }

// record probes the API and stores the result. A failed probe and a gap in the
// records restart the time since when workers can reach it.
func (s *Reception) record(ctx context.Context, probe Probe) error {
	note, err := s.store.Reception(ctx)
	if err != nil {
		return fmt.Errorf("cannot read the reception record: %w", err)
	}
	unreachable := probe(ctx)
	now := s.now()
	age := now.Sub(note.ProbedAt)
	if unreachable == nil && !note.Since.IsZero() && age >= 0 && age < s.interval/2 {
		return nil // another process has just recorded it
	}
	switch {
	case unreachable != nil:
		note.Since = time.Time{}
		unreachable = fmt.Errorf("workers cannot reach the API: %w", unreachable)
	case note.Since.IsZero() || age < 0 || age > s.gap():
		note.Since = now
	}
	note.ProbedAt = now
	if err := s.store.RecordReception(ctx, note); err != nil {
		return errors.Join(unreachable, fmt.Errorf("cannot store the reception record: %w", err))
	}
	return unreachable
}

// current returns since when workers can reach the API. unknown reports that the
// record is out of date or that the last probe failed.
func (s *Reception) current(ctx context.Context) (since time.Time, unknown bool, err error) {
	note, err := s.store.Reception(ctx)
	if err != nil {
		return time.Time{}, true, fmt.Errorf("cannot read the reception record: %w", err)
	}
	age := s.now().Sub(note.ProbedAt)
	return note.Since, note.Since.IsZero() || age < -s.gap() || age > s.gap(), nil
}
