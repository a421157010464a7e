package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/job"
)

// parts are the parts of Sortie that a scenario does not model, by the names that a file could
// give them.
var parts = map[string]string{
	"kubernetes": "Kubernetes", "pods": "Kubernetes", "pools": "several pools", "warm": "warm machines", "inference": "inference", "engines": "inference",
	"models": "inference", "budgets": "budgets of inference", "webhooks": "webhooks", "hooks": "webhooks as conditions", "sensors": "sensors",
	"exports": "exports", "fallbacks": "fallbacks to other pools", "regions": "regions", "drains": "drains of pools",
}

// unknownPart returns the problem of a field; for a part that is not modelled it says so.
func unknownPart(p job.Problem) string {
	if strings.HasPrefix(p.Problem, "empty document") {
		return "empty document, want a scenario: an object with start, days and jobs"
	}
	name := p.Field[strings.LastIndexByte(p.Field, '.')+1:]
	if part, ok := parts[name]; ok && strings.HasPrefix(p.Problem, "unknown field") {
		return notModelled(part)
	}
	return p.Problem
}

func notModelled(part string) string {
	return fmt.Sprintf("%s: not modelled, want a scenario without it", part)
}

// unmodelled returns the fields of a definition whose effect a play could only guess.
func unmodelled(d job.Definition) (found []job.Problem) {
	add := func(is bool, field, part string) {
		if is {
			found = append(found, job.Problem{Field: field, Problem: notModelled(part)})
		}
	}
	add(d.Export != nil, "export", "exports")
	add(d.Sensor != nil, "sensor", "sensors")
	add(len(d.PodSpec) > 0, "podSpec", "Kubernetes")
	add(d.Pool != "" && d.Pool != pool, "pool", "several pools")
	add(d.Items != nil && d.Items.From != nil, "items.from", "items from the output of another job")
	if c := d.Constraints; c != nil {
		add(c.PreRunHook != nil, "constraints.preRunHook", "webhooks as conditions")
		add(c.PostRunHook != nil, "constraints.postRunHook", "webhooks as conditions")
	}
	if d.Actions == nil {
		return found
	}
	for name, actions := range map[string]job.ActionList{
		"onSuccess": d.Actions.OnSuccess, "onFailure": d.Actions.OnFailure, "onSkip": d.Actions.OnSkip, "onRetry": d.Actions.OnRetry, "onLate": d.Actions.OnLate,
	} {
		for _, a := range actions {
			add(readsOutput(a), "actions."+name, "variables from the output of a run")
		}
	}
	slices.SortFunc(found, func(a, b job.Problem) int { return strings.Compare(a.Field, b.Field) })
	return found
}

// readsOutput reports whether a variable of the action comes from the output of the run.
func readsOutput(a job.Action) bool {
	variables, _ := a.Parameters["parameters"].(map[string]any)
	return slices.ContainsFunc(slices.Collect(maps.Values(variables)), func(v any) bool {
		_, text := v.(string)
		return !text
	})
}
