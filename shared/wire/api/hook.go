package api

import (
	"encoding/json"
	"slices"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/shared/app/hooks"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// HookBody encodes the body of a request to a hook.
func HookBody(c hooks.Call) ([]byte, error) {
	event, _ := spec.EndAction(c.Reason).Event()
	body := contract.HookBody{Hook: string(event), Run: Task(runs.View{Run: c.Run, QueuePosition: -1})}
	if body.Run.Program != nil {
		body.Run.Program.Env = nil // the values may be intended only for the program
	}
	if c.Run.JobID != "" {
		body.Job = &contract.HookJob{ID: c.Run.JobID, Version: c.Run.JobVersion}
	}
	if c.Asks || slices.Contains(spec.EndActions(), event) {
		return json.Marshal(body)
	}
	body.Hook = contract.HookOnViolation
	for _, v := range c.Run.Violations {
		if v.Constraint == spec.Constraint(c.Reason) {
			body.Constraint = &contract.HookConstraint{Name: c.Reason, Message: v.Message, Timestamp: v.At, Unchecked: v.Unchecked}
		}
	}
	return json.Marshal(body)
}
