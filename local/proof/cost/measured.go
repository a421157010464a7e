package cost

import (
	"encoding/json"
	"fmt"
	"os"
)

// Row is one measurement.
type Row struct {
	Name  string `json:"name"`
	Usage Usage  `json:"usage"`
	// States are the names of the entered states, in order.
	States []string `json:"states,omitempty"`
}

// The names of the rows that have goals.
const (
	RowPlain      = "an export"
	RowLost       = "an export whose first worker is lost"
	RowLimit      = "a run into its time limit"
	RowCancelled  = "a run that is cancelled while its worker is active"
	RowRetried    = "an export that a client has tried again"
	RowHeartbeats = "an hour of heartbeats at 30 s"
	RowIdle       = "a month without a run"
)

// Measured is the result of "make cost".
type Measured struct {
	// On is the date, as 2006-01-02. With is the emulator and its version.
	On   string `json:"on"`
	With string `json:"with"`
	Rows []Row  `json:"rows"`
	// Pages are those of the console.
	Pages []Page `json:"pages,omitempty"`
}

// Row returns the row with the name. It returns false if there is no such row.
func (m Measured) Row(name string) (Row, bool) {
	for _, row := range m.Rows {
		if row.Name == name {
			return row, true
		}
	}
	return Row{}, false
}

// Read reads a measurement.
func Read(file string) (Measured, error) {
	var m Measured
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return m, fmt.Errorf("cannot read the measurement: %w", err)
	}
	return m, nil
}

// Write stores a measurement.
func (m Measured) Write(file string) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err == nil {
		err = os.WriteFile(file, append(text, '\n'), 0o644) //nolint:gosec // a document that everybody may read
	}
	if err != nil {
		return fmt.Errorf("cannot store the measurement: %w", err)
	}
	return nil
}

// Goal is an upper limit of a usage or cost.
type Goal struct {
	Claim      string
	Is, AtMost float64
}

// Met reports whether the goal is met.
func (g Goal) Met() bool { return g.Is <= g.AtMost }

// Goals returns the goals with their measured values. A missing row has no goals.
func (m Measured) Goals() []Goal {
	var goals []Goal
	if plain, ok := m.Row(RowPlain); ok {
		goals = append(
			goals,
			Goal{"transitions of an export", plain.Usage[Transitions], 8},
			Goal{"write units of an export, without its events", plain.Usage[WriteUnits], 60},
			Goal{"write units of the events of an export", plain.Usage[EventUnits], 45},
			Goal{"dollars for a million exports", Dollars(plain.Usage) * 1e6, 300},
		)
	}
	if hour, ok := m.Row(RowHeartbeats); ok {
		goals = append(goals, Goal{"dollars for an hour of a run's heartbeats", Dollars(hour.Usage), 0.001})
	}
	if idle, ok := m.Row(RowIdle); ok {
		goals = append(goals, Goal{"dollars for a month without a run", Dollars(idle.Usage), 5})
	}
	return goals
}
