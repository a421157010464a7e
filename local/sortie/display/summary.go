package display

import (
	"fmt"
	"io"
	"time"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Phase is the time that a run spent in a state.
type Phase struct {
	State   string
	Attempt int
	Time    time.Duration
	// Last means that this is the current state.
	Last bool
}

// Phases derives the phases of a run from its events.
func Phases(events []contract.TaskEvent) []Phase {
	var phases []Phase
	var since time.Time
	for _, e := range events {
		if e.From == e.State {
			continue
		}
		if n := len(phases); n > 0 {
			phases[n-1].Time, phases[n-1].Last = e.OccurredAt.Sub(since), false
		}
		phases = append(phases, Phase{State: e.State, Attempt: e.Attempt, Last: true})
		since = e.OccurredAt
	}
	return phases
}

// WritePhases writes the states of a run with their durations.
func WritePhases(out io.Writer, events []contract.TaskEvent) error {
	table := NewTable()
	var total time.Duration
	for _, s := range Phases(events) {
		total += s.Time
		duration := Duration(s.Time)
		if s.Last {
			duration = ""
		}
		name := s.State
		if s.Attempt > 1 {
			name = fmt.Sprintf("%s (attempt %d)", name, s.Attempt)
		}
		table.Row("  "+name, duration)
	}
	table.Row("  total", Duration(total))
	_, err := table.WriteTo(out)
	return err
}
