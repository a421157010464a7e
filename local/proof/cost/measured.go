package cost

import (
	"encoding/json"
	"fmt"
	"os"
)

// Row is one thing that was measured.
type Row struct {
	Name  string `json:"name"`
	Usage Usage  `json:"usage"`
	// Transitions names the states that were entered, in order.
	States []string `json:"states,omitempty"`
}

// The names of the rows that goals are about.
const (
	RowPlain      = "an export"
	RowLost       = "an export whose first worker is lost"
	RowLimit      = "a run into its time limit"
	RowCancelled  = "a run that is cancelled while its worker is at work"
	RowRetried    = "an export that a client has tried again"
	RowHeartbeats = "an hour of 30 s heartbeats"
	RowIdle       = "a month without a run"
)

// Measured is what "make cost" has found.
type Measured struct {
	// On is the day, as 2006-01-02; With the emulator and its version.
	On   string `json:"on"`
	With string `json:"with"`
	Rows []Row  `json:"rows"`
}

// Row finds a row by its name.
func (m Measured) Row(name string) (Row, bool) {
	for _, row := range m.Rows {
		if row.Name == name {
			return row, true
		}
	}
	return Row{}, false
}

// Read reads what was measured.
func Read(file string) (Measured, error) {
	var m Measured
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return m, fmt.Errorf("cannot read what was measured: %w", err)
	}
	return m, nil
}

// Write keeps what was measured.
func (m Measured) Write(file string) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err == nil {
		err = os.WriteFile(file, append(text, '\n'), 0o644) //nolint:gosec // a document that everybody may read
	}
	if err != nil {
		return fmt.Errorf("cannot keep what was measured: %w", err)
	}
	return nil
}

// Goal is a limit of what something may use or cost.
type Goal struct {
	Claim      string
	Is, AtMost float64
}

// Met says whether it is kept.
func (g Goal) Met() bool { return g.Is <= g.AtMost }

// Goals are held to what was measured; a row that is missing has no goals.
func (m Measured) Goals() []Goal {
	var goals []Goal
	if plain, ok := m.Row(RowPlain); ok {
		goals = append(
			goals,
			Goal{"transitions of an export", plain.Usage[Transitions], 8},
			Goal{"write units of an export", plain.Usage[WriteUnits], 60},
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
