package simulation

import (
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// drawActions draws the actions of a job. Actions that name a job may build chains and cycles.
func (w *world) drawActions(id string, constraints map[string]any) map[string]any {
	_, limited := constraints["maxConcurrentRuns"]
	actions := map[string]any{}
	if w.Chance(0.8) {
		actions["onConstraintViolation"] = w.drawAction(id, limited, false)
	}
	single := map[spec.Constraint]any{}
	for _, name := range []spec.Constraint{spec.MaxConcurrentRuns, spec.RequirePreviousSuccess, spec.CatchUpWindow, spec.PreRunHook} {
		if _, has := constraints[string(name)]; has && w.Chance(0.3) {
			single[name] = w.drawAction(id, limited, false)
		}
	}
	for _, name := range []spec.Constraint{spec.MaxExpectedRunTime, spec.MaxAllowedRunTime, spec.PostRunHook} {
		if _, has := constraints[string(name)]; has && w.Chance(0.3) {
			single[name] = w.drawAction(id, limited, true)
		}
	}
	if len(single) > 0 {
		actions["onViolationOf"] = single
	}
	for _, name := range []string{"onSuccess", "onFailure", "onSkip"} {
		if w.Chance(0.4) {
			actions[name] = w.drawAction(id, limited, true)
		}
	}
	if w.Seed%10 == 6 {
		w.drawLists(id, constraints, actions)
	}
	return actions
}

// drawLists adds lists of actions, and actions of events before the end of a run.
func (w *world) drawLists(id string, constraints, actions map[string]any) {
	draw := func() any { return w.drawAction(id, false, true) }
	if first, has := actions["onFailure"]; has {
		actions["onFailure"] = []any{first, draw(), draw()}
	}
	actions["onSuccess"] = []any{draw(), draw()}
	actions["onRetry"] = []any{draw(), draw()}
	if _, has := constraints["maxExpectedRunTime"]; has {
		actions["onLate"] = draw()
	}
}

// drawAction draws an action. If after is true, the action follows a run: it is webhook or
// trigger_job.
func (w *world) drawAction(id string, limited, after bool) map[string]any {
	types := []spec.ActionType{spec.ActionWebhook, spec.ActionTriggerJob}
	if !after {
		types = append(types, spec.ActionSkip, spec.ActionRetryLater)
	}
	if !after && limited {
		types = append(types, spec.ActionWait, spec.ActionKillOld, spec.ActionWait, spec.ActionKillOld)
	}
	kind, parameters := types[w.Random.IntN(len(types))], map[string]any{}
	switch kind {
	case spec.ActionWebhook:
		parameters["url"] = w.drawHook()["url"]
	case spec.ActionTriggerJob:
		parameters["jobId"] = fmt.Sprintf("job-%d", 1+w.Random.IntN(maxJobs))
		if parameters["jobId"] == id {
			parameters["jobId"] = "job-0" // this job does not exist
		}
	case spec.ActionRetryLater:
		limit := w.Between(10*time.Second, max(w.Longest/8, 20*time.Second))
		parameters["limit"], parameters["delay"] = limit.String(), w.Between(time.Second, limit/2).String()
		if w.Chance(0.3) {
			parameters["maxRetries"] = 1 + w.Random.IntN(5)
		}
	case spec.ActionWait:
		parameters["limit"] = w.Between(10*time.Second, max(w.Longest/8, 20*time.Second)).String()
	}
	a := map[string]any{"type": kind, "parameters": parameters}
	if len(parameters) == 0 {
		delete(a, "parameters")
	}
	if w.Chance(0.2) && !after && (kind == spec.ActionWebhook || kind == spec.ActionTriggerJob) {
		a["critical"] = true
	}
	return a
}
