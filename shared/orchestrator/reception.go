package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// sweepEvery is how often a sweep is due where the configuration does not say.
const sweepEvery = time.Minute

// gap is the time after which a note about the reception is old: a sweep has
// been missed. Two intervals, less what a schedule may be off.
func (s *Service) gap() time.Duration { return s.every() * 7 / 4 }

func (s *Service) every() time.Duration {
	if s.config.SweepInterval == 0 {
		return sweepEvery
	}
	return s.config.SweepInterval
}

// NoteReception finds out whether calls of workers can be received, and notes it.
// An answer that is none, and a gap in the notes, start the time since when they
// can be received anew: no worker is held to a silence that may be ours. A sweep
// begins with it; where sweeps take long it is also called beside them, each
// SweepInterval. It needs Probe beside Store and Clock; without one, whoever
// calls it is the proof.
func (s *Service) RecordReception(ctx context.Context) error {
	note, err := s.ports.Store.Reception(ctx)
	if err != nil {
		return fmt.Errorf("cannot read the note about the reception: %w", err)
	}
	var unheard error
	if s.ports.Probe != nil {
		unheard = s.ports.Probe(ctx)
	}
	now := s.now()
	gap := now.Sub(note.ProbedAt)
	if unheard == nil && !note.Since.IsZero() && gap >= 0 && gap < s.every()/2 {
		return nil // somebody else has just noted it
	}
	switch {
	case unheard != nil:
		note.Since = time.Time{}
		unheard = fmt.Errorf("workers cannot reach this Sortie: %w", unheard)
	case note.Since.IsZero() || gap < 0 || gap > s.gap():
		note.Since = now
	}
	note.ProbedAt = now
	if err := s.ports.Store.RecordReception(ctx, note); err != nil {
		return errors.Join(unheard, fmt.Errorf("cannot note the reception: %w", err))
	}
	return unheard
}

// reception tells since when calls can be received. blind says that nobody knows
// whether they can be now.
func (s *Service) reception(ctx context.Context) (since time.Time, blind bool, err error) {
	note, err := s.ports.Store.Reception(ctx)
	if err != nil {
		return time.Time{}, true, fmt.Errorf("cannot read the note about the reception: %w", err)
	}
	age := s.now().Sub(note.ProbedAt)
	return note.Since, note.Since.IsZero() || age < -s.gap() || age > s.gap(), nil
}
