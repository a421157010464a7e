package display

import (
	"fmt"
	"io"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
)

// Stay is how long a run was in a state.
type Stay struct {
	State   string
	Attempt int
	Time    time.Duration
	// Last says that the run is still there.
	Last bool
}

// Stays derives from a run's events where it was how long.
func Stays(events []contract.TaskEvent) []Stay {
	var stays []Stay
	var since time.Time
	for _, e := range events {
		if e.From == e.State {
			continue
		}
		if n := len(stays); n > 0 {
			stays[n-1].Time, stays[n-1].Last = e.OccurredAt.Sub(since), false
		}
		stays = append(stays, Stay{State: e.State, Attempt: e.Attempt, Last: true})
		since = e.OccurredAt
	}
	return stays
}

// WriteStays writes a run's states with their durations.
func WriteStays(out io.Writer, events []contract.TaskEvent) error {
	table := NewTable()
	var all time.Duration
	for _, s := range Stays(events) {
		all += s.Time
		lasted := Duration(s.Time)
		if s.Last {
			lasted = ""
		}
		name := s.State
		if s.Attempt > 1 {
			name = fmt.Sprintf("%s (attempt %d)", name, s.Attempt)
		}
		table.Row("  "+name, lasted)
	}
	table.Row("  in all", Duration(all))
	_, err := table.WriteTo(out)
	return err
}
