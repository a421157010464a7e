package job

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/shared/base/hook/guard"
	"github.com/sortie-dev/sortie/shared/base/limit"
)

// The ranges of constraints and actions.
const (
	maxWindow = 30 * 24 * time.Hour
	maxDelay  = 24 * time.Hour
	maxWait   = limit.Duration
	maxChecks = 10_000
)

func validateConstraints(d Definition, p *problems) {
	c := d.Constraints
	if c == nil {
		return
	}
	const in = "constraints."
	p.within(in+"maxConcurrentRuns", c.MaxConcurrentRuns, 1, limit.ConcurrentRuns)
	p.duration(in+"catchUpWindow", c.CatchUpWindow, time.Second, maxWindow)
	expected := p.duration(in+"maxExpectedRunTime", c.MaxExpectedRunTime, time.Second, limit.TimeLimit)
	p.duration(in+"maxAllowedRunTime", c.MaxAllowedRunTime, 0, math.MaxInt64) // validatePolicy checks the range
	if expected && c.MaxAllowedRunTime.Value() > 0 && c.MaxExpectedRunTime.Value() >= c.MaxAllowedRunTime.Value() {
		p.addConflict(in+"maxExpectedRunTime", "%s is never exceeded, want less than the maxAllowedRunTime of %s", c.MaxExpectedRunTime, c.MaxAllowedRunTime)
	}
	oneOf(p, in+"onUnavailable", c.OnUnavailable, UnavailableSkip, UnavailableAllow)
	validateHook(in+"preRunHook", c.PreRunHook, p)
	validateHook(in+"postRunHook", c.PostRunHook, p)
}

// validateWakes refuses lateness limits that are shorter than the precision of the deployment's
// wake-ups.
func validateWakes(d Definition, precision time.Duration, p *problems) {
	limits := map[string]Duration{"startingDeadline": d.StartingDeadline}
	if d.Constraints != nil {
		limits["constraints.catchUpWindow"] = d.Constraints.CatchUpWindow
	}
	for field, value := range limits {
		if value != "" && value.Value() < precision {
			p.addConflict(field, "%s is too short, want at least %s: wake-ups of this deployment can be that late", value, short(precision))
		}
	}
}

func validateHook(field string, h *Hook, p *problems) {
	if h == nil {
		return
	}
	validateURL(field+".url", h.URL, p)
	validateSecret(field+".secretRef", h.SecretRef, p)
	p.duration(field+".timeout", h.Timeout, time.Second, limit.HookTimeout)
	oneOf(p, field+".onUnavailable", h.OnUnavailable, UnavailableSkip, UnavailableAllow)
	for name, problem := range guard.CheckHeaders(h.Headers) {
		at := field + ".headers"
		if name != "" {
			at = join(at, limit.Cut(name, nameLimit))
		}
		p.bad(at, "%s", problem)
	}
}

func validateURL(field, text string, p *problems) {
	u, err := url.Parse(text)
	switch {
	case text == "":
		p.bad(field, "missing url, want an https address")
	case err != nil || len(text) > guard.MaxURL || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		p.bad(field, "malformed url %q, want an https address of at most %d bytes", limit.Cut(text, nameLimit), guard.MaxURL)
	}
}

// urls returns the addresses of sensors, hooks, webhooks and mail servers, keyed by field.
func (d Definition) urls() iter.Seq2[string, string] {
	return func(yield func(field, url string) bool) {
		if c := d.Constraints; c != nil {
			if c.PreRunHook != nil && !yield("constraints.preRunHook.url", c.PreRunHook.URL) ||
				c.PostRunHook != nil && !yield("constraints.postRunHook.url", c.PostRunHook.URL) {
				return
			}
		}
		if field, address := d.sensorAddress(); address != "" && !yield(field, address) {
			return
		}
		for field, a := range d.actions() {
			if text, ok := a.Parameters["url"].(string); ok && !yield(field+".parameters.url", text) {
				return
			}
			if host, address := a.mailServer(); host != "" && !yield(field+".parameters.host", address) {
				return
			}
		}
	}
}

// NewAddress returns the field of the first hook or webhook address that the definition before
// does not have; empty if there is no new address.
func (d Definition) NewAddress(before Definition) (field string) {
	known := map[string]bool{}
	for _, address := range before.addresses() {
		known[address] = true
	}
	for field, address := range d.addresses() {
		if !known[address] {
			return field
		}
	}
	return ""
}

// Triggers returns the ids of the jobs that the actions trigger, keyed by field.
func (d Definition) Triggers() iter.Seq2[string, string] {
	return func(yield func(field, jobID string) bool) {
		for field, a := range d.actions() {
			if text, ok := a.Parameters["jobId"].(string); ok && a.Type == spec.ActionTriggerJob && !yield(field+".parameters.jobId", text) {
				return
			}
		}
	}
}

// actions returns the actions, keyed by field.
func (d Definition) actions() iter.Seq2[string, Action] {
	return func(yield func(string, Action) bool) {
		if d.Actions == nil {
			return
		}
		if a := d.Actions.OnConstraintViolation; a != nil && !yield("actions.onConstraintViolation", *a) {
			return
		}
		for field, list := range d.Actions.events() {
			for at, action := range list.fields(field) {
				if !yield(at, action) {
					return
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(d.Actions.OnViolationOf)) {
			if !yield("actions.onViolationOf."+string(name), d.Actions.OnViolationOf[name]) {
				return
			}
		}
	}
}

// parameterKind is the kind of a parameter of an action.
type parameterKind int

const (
	durationParameter parameterKind = iota
	urlParameter
	secretParameter
	jobParameter
	environmentParameter
	countParameter
	noticeParameter // of notify; see noticeProblems
	bodyParameter
)

// parameter describes a parameter of a type of action.
type parameter struct {
	kind        parameterKind
	required    bool
	least, most time.Duration
}

// parameters lists the parameters of each type of action.
var parameters = map[spec.ActionType]map[string]parameter{
	spec.ActionSkip: {},
	spec.ActionRetryLater: {
		"delay":      {kind: durationParameter, least: time.Second, most: maxDelay},
		"limit":      {kind: durationParameter, least: time.Second, most: maxWait},
		"maxRetries": {kind: countParameter},
	},
	spec.ActionKillOld: {"limit": {kind: durationParameter, least: time.Minute, most: maxWait}},
	spec.ActionWait:    {"limit": {kind: durationParameter, least: time.Second, most: maxWait}},
	spec.ActionWebhook: {
		"url":       {kind: urlParameter, required: true},
		"secretRef": {kind: secretParameter},
		"timeout":   {kind: durationParameter, least: time.Second, most: limit.HookTimeout},
		"body":      {kind: bodyParameter},
	},
	spec.ActionNotify:     noticeParameters,
	spec.ActionTriggerJob: {"jobId": {kind: jobParameter, required: true}, "parameters": {kind: environmentParameter}},
}

// informing are the types that can follow the end of a run, and that can fail themselves.
var informing = []spec.ActionType{spec.ActionWebhook, spec.ActionTriggerJob}

func validateActions(d Definition, p *problems) {
	for field, action := range d.actions() {
		validateAction(d, field, action, p)
	}
	if d.Actions == nil {
		return
	}
	d.Actions.validateEvents(d, p)
	for name := range d.Actions.OnViolationOf {
		if field := "actions.onViolationOf." + string(name); !slices.Contains(spec.ConstraintNames(), name) {
			p.bad(field, "unknown constraint, want one of %s", list(spec.ConstraintNames()))
		} else if !d.has(name) {
			p.addConflict(field, "the job has no constraint %s; add it, or leave the action out", name)
		}
	}
}

func validateAction(d Definition, field string, action Action, p *problems) {
	known, ok := parameters[action.Type]
	if !ok {
		p.bad(field+".type", "unknown type %q, want one of %s", limit.Cut(string(action.Type), nameLimit), list(spec.ActionTypes()))
		return
	}
	switch follows := afterRun(field); {
	case follows && !action.Type.Follows():
		p.addConflict(field+".type", "%s has no meaning after a run, want %s, %s", action.Type, list(informing), spec.ActionNotify)
	case !follows && action.Type == spec.ActionNotify:
		p.addConflict(field+".type", "%s does not answer a violation, want it in actions.onSkip", action.Type)
	}
	switch limited := d.has(spec.MaxConcurrentRuns); {
	case action.Type == spec.ActionKillOld && !limited:
		p.addConflict(field+".type", "%s needs constraints.maxConcurrentRuns; add it, or choose another type", action.Type)
	case action.Type == spec.ActionWait && !limited && !d.has(spec.RequirePreviousSuccess):
		p.addConflict(field+".type", "%s needs constraints.maxConcurrentRuns or requirePreviousSuccess; add one, or choose another type", action.Type)
	}
	if given(action.Critical) && !slices.Contains(informing, action.Type) {
		p.addConflict(field+".critical", "no meaning with %s, which cannot fail by itself; leave it out, or choose %s", action.Type, list(informing))
	}
	if given(action.Critical) && afterRun(field) && slices.Contains(informing, action.Type) {
		p.addConflict(field+".critical", "no meaning after a run, whose end does not change; leave it out")
	}
	names := slices.Sorted(maps.Keys(known))
	for name := range action.Parameters {
		if _, ok := known[name]; !ok && len(names) == 0 {
			p.bad(field+".parameters."+name, "unknown parameter of %s, want none", action.Type)
		} else if !ok {
			p.bad(field+".parameters."+name, "unknown parameter of %s, want %s", action.Type, strings.Join(names, ", "))
		}
	}
	for _, name := range names {
		validateParameter(d, field+".parameters."+name, action, name, known[name], p)
	}
	if delay, most := action.duration("delay", 0), action.duration("limit", spec.ActionLimit); delay >= most && delay > 0 {
		p.addConflict(field+".parameters.delay", "%s is too long, want less than the limit of %s", short(delay), short(most))
	}
}

func validateParameter(d Definition, field string, action Action, name string, want parameter, p *problems) {
	value, given := action.Parameters[name]
	if !given {
		if want.required {
			p.bad(field, "missing parameter of %s", action.Type)
		}
		return
	}
	if want.kind == durationParameter {
		p.duration(field, durationOf(value), want.least, want.most)
		return
	}
	if want.kind == noticeParameter || want.kind == bodyParameter {
		validateNotice(d, field, action, name, value, p)
		return
	}
	if want.kind == environmentParameter {
		validateTriggerParameters(d, field, value, p)
		return
	}
	if want.kind == countParameter {
		if n, ok := value.(float64); !ok || n != math.Trunc(n) || n < 1 || n > maxChecks {
			p.bad(field, "%v, want a whole number from 1 to %d", value, maxChecks)
		}
		return
	}
	text, ok := value.(string)
	switch {
	case !ok:
		p.bad(field, "%v, want a string", value)
	case want.kind == urlParameter:
		validateURL(field, text, p)
	case want.kind == secretParameter:
		validateSecret(field, text, p)
	case !limit.ValidName(text):
		p.bad(field, "malformed job id %q, %s", limit.Cut(text, nameLimit), wantName)
	case text == d.ID:
		p.addConflict(field, "the job itself, which is a cycle; want another job")
	}
}

// afterRun reports whether the action in the field follows an event of a run.
func afterRun(field string) bool {
	if onEvent(field) {
		return true
	}
	switch strings.TrimPrefix(field, "actions.") {
	case "onViolationOf." + string(spec.MaxExpectedRunTime), "onViolationOf." + string(spec.MaxAllowedRunTime), "onViolationOf." + string(spec.PostRunHook):
		return true
	}
	return false
}

// has reports whether the job has the constraint. Every run has a time limit
// (maxAllowedRunTime).
func (d Definition) has(name spec.Constraint) bool {
	c := d.Constraints
	if name == spec.MaxAllowedRunTime {
		return true
	}
	if c == nil {
		return false
	}
	return map[spec.Constraint]bool{
		spec.MaxConcurrentRuns:      c.MaxConcurrentRuns != nil,
		spec.RequirePreviousSuccess: given(c.RequirePreviousSuccess),
		spec.CatchUpWindow:          c.CatchUpWindow != "",
		spec.PreRunHook:             c.PreRunHook != nil,
		spec.MaxExpectedRunTime:     c.MaxExpectedRunTime != "",
		spec.PostRunHook:            c.PostRunHook != nil,
	}[name]
}

// durationOf returns the duration of a parameter: a text, or a number of seconds.
func durationOf(value any) Duration {
	if seconds, ok := value.(float64); ok {
		return Duration(fmt.Sprintf("%gs", seconds))
	}
	text, _ := value.(string)
	return Duration(text)
}

// duration returns the parameter as a duration, or the fallback if it is absent.
func (a Action) duration(name string, fallback time.Duration) time.Duration {
	if value, ok := a.Parameters[name]; ok {
		return durationOf(value).Value()
	}
	return fallback
}

// validateTriggerParameters checks the variables of a triggered run.
func validateTriggerParameters(d Definition, field string, value any, p *problems) {
	variables, ok := value.(map[string]any)
	if !ok {
		p.bad(field, "%v, want an object of variables", value)
		return
	}
	env := make(map[string]Variable, len(variables))
	for name, v := range variables {
		at := join(field, limit.Cut(name, nameLimit))
		switch v := v.(type) {
		case string:
			env[name] = Variable{Value: v}
		case map[string]any:
			env[name] = Variable{}
			if from, ok := v["fromOutput"].(bool); !ok || !from || len(v) != 1 {
				p.bad(at, "malformed value of a variable, want a string or {fromOutput: true}")
			} else if !strings.HasPrefix(field, "actions.onSuccess.") {
				p.addConflict(join(at, "fromOutput"), "only a run that has succeeded has an output, want it in actions.onSuccess")
			} else if d.Output == nil && d.Export == nil {
				p.addConflict(join(at, "fromOutput"), "the job has no output; add output, or give a text")
			}
		default:
			p.bad(at, "malformed value of a variable, want a string or {fromOutput: true}")
		}
	}
	validateEnv(field, env, p)
}

// triggerParameters returns the variables of a triggered run; nil without variables.
func (a Action) triggerParameters() map[string]spec.TriggerParameter {
	variables, _ := a.Parameters["parameters"].(map[string]any)
	if len(variables) == 0 {
		return nil
	}
	found := make(map[string]spec.TriggerParameter, len(variables))
	for name, v := range variables {
		text, isText := v.(string)
		found[name] = spec.TriggerParameter{Text: text, FromOutput: !isText}
	}
	return found
}

func list[T ~string](values []T) string {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = string(v)
	}
	return strings.Join(names, ", ")
}
