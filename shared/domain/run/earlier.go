package run

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// Records, events and executions of version 0.0 use names that 0.1 replaced.
// The types below still read them; nothing writes them any more.

// earlierNames are the JSON fields that only a record of version 0.0 has.
var earlierNames = [][]byte{
	[]byte(`"silent":`), []byte(`"quietFrom":`), []byte(`"toldAt":`), []byte(`"termAt":`),
	[]byte(`"machineId":`), []byte(`"stand":`), []byte(`"judgements":`), []byte(`"keptAt":`),
}

// UnmarshalJSON reads a record of this version or of version 0.0.
func (r *Run) UnmarshalJSON(data []byte) error {
	type plain Run
	if err := json.Unmarshal(data, (*plain)(r)); err != nil {
		return err
	}
	for _, name := range earlierNames {
		if bytes.Contains(data, name) {
			return r.readEarlier(data)
		}
	}
	return nil
}

// readEarlier sets the fields that data has under their names of version 0.0.
func (r *Run) readEarlier(data []byte) error {
	var earlier struct {
		Attempt struct {
			MachineID earlierMachine `json:"machineId"`
			Silent    bool           `json:"silent"`
			QuietFrom time.Time      `json:"quietFrom"`
			ToldAt    time.Time      `json:"toldAt"`
			TermAt    time.Time      `json:"termAt"`
		} `json:"attempt"`
		Spent struct {
			Judgements int `json:"judgements"`
		} `json:"spent"`
		Slot struct {
			Stand platform.SlotState `json:"stand"`
		} `json:"slot"`
		Output struct {
			KeptAt time.Time `json:"keptAt"`
		} `json:"output"`
	}
	if err := json.Unmarshal(data, &earlier); err != nil {
		return err
	}
	r.Attempt.HeartbeatExempt = r.Attempt.HeartbeatExempt || earlier.Attempt.Silent
	r.Spent.Evaluations = max(r.Spent.Evaluations, earlier.Spent.Judgements)
	setIfZero(&r.Attempt.Machine, platform.Machine(earlier.Attempt.MachineID))
	setIfZero(&r.Attempt.LastContactAt, earlier.Attempt.QuietFrom)
	setIfZero(&r.Attempt.CancelDeliveredAt, earlier.Attempt.ToldAt)
	setIfZero(&r.Attempt.SigtermAt, earlier.Attempt.TermAt)
	setIfZero(&r.Slot.State, earlier.Slot.Stand)
	if r.Output != nil {
		setIfZero(&r.Output.AcceptedAt, earlier.Output.KeptAt)
	}
	return nil
}

func setIfZero[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// earlierMachine is a machine of version 0.0: the text "app/id" of Fly.
type earlierMachine platform.Machine

// UnmarshalText reads the text of version 0.0.
func (m *earlierMachine) UnmarshalText(text []byte) error {
	app, id, ok := strings.Cut(string(text), "/")
	if !ok {
		app, id = "", app
	}
	*m = earlierMachine{Runner: "fly", App: app, ID: id}
	return nil
}

// earlierEvents maps the renamed event types of version 0.0 to those of 0.1.
var earlierEvents = map[string]EventType{
	"run.action_begun": EventActionStarted, "run.machine_made": EventMachineCreated,
	"run.cancel_wished": EventCancelRequested, "run.heartbeat_waived": EventHeartbeatExempted,
	"run.worker_heard": EventWorkerContacted,
}

// UnmarshalText reads a type of this version or of version 0.0, whose types
// have the prefix "run.".
func (t *EventType) UnmarshalText(text []byte) error {
	*t = EventType(text)
	if renamed, ok := earlierEvents[string(text)]; ok {
		*t = renamed
	} else if rest, ok := strings.CutPrefix(string(text), "run."); ok {
		*t = EventType("job." + rest)
	}
	return nil
}

// UnmarshalText reads a step of this version, or of an execution that version
// 0.0 started.
func (s *Step) UnmarshalText(text []byte) error {
	*s = Step(text)
	if *s == "Judging" {
		*s = StepReconciling
	}
	return nil
}
