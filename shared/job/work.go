package job

import (
	"path"
	"time"

	"github.com/sortie-dev/sortie/shared/run"
)

// The defaults of hooks and actions.
const (
	defaultHookTime = 10 * time.Second
	defaultDelay    = time.Minute
	defaultWait     = 24 * time.Hour
	// killSlack is how long kill_old waits at least, beside the grace of a run.
	killSlack   = time.Minute
	defaultKill = 10 * time.Minute
)

// Run returns a run with what the definition says about each: its work, policy,
// constraints and actions. defaults is the policy of the deployment. The run has no
// identity.
func (d Definition) Run(defaults run.Policy) run.Run {
	policy, _ := d.policy(defaults)
	r := run.Run{
		Work: d.work(), Policy: policy, JobID: d.ID,
		Constraints: d.constraints(), Actions: d.runActions(policy.CancelGrace),
	}
	return r
}

func (d Definition) work() run.Work {
	program := &run.Program{Command: d.Command, Completion: run.CompletionExit, DropLogs: d.Logs == LogsDrop}
	if d.Completion != "" {
		program.Completion = d.Completion
	}
	if d.ExitCodes != nil {
		program.ExitCodes = *d.ExitCodes
	}
	if len(d.Env) > 0 {
		program.Env = make(map[string]run.Variable, len(d.Env))
	}
	for name, v := range d.Env {
		program.Env[name] = run.Variable(v)
	}
	if d.Input != "" {
		program.Input = &run.Input{Text: d.Input, Size: int64(len(d.Input))}
	}
	if o := d.Output; o != nil {
		program.Output = &run.ProgramOutput{Path: o.Path, FileName: o.FileName, ContentType: o.ContentType}
		if o.FileName == "" {
			program.Output.FileName = path.Base(o.Path)
		}
	}
	resources := run.Resources{Region: d.Region}
	if r := d.Resources; r != nil && r.CPUs != nil {
		resources.CPUs = *r.CPUs
	}
	if r := d.Resources; r != nil && r.MemoryMB != nil {
		resources.MemoryMB = *r.MemoryMB
	}
	return run.Work{Kind: run.KindJob, Image: d.Image, Program: program, Resources: resources}
}

func (d Definition) constraints() *run.Constraints {
	c := d.Constraints
	if c == nil {
		return nil
	}
	found := &run.Constraints{
		RequirePreviousSuccess: given(c.RequirePreviousSuccess), CatchUpWindow: c.CatchUpWindow.Value(),
		MaxExpectedRunTime: c.MaxExpectedRunTime.Value(), AllowUnchecked: c.OnUnavailable == UnavailableAllow,
		PreRunHook: c.PreRunHook.run(), PostRunHook: c.PostRunHook.run(),
	}
	if c.MaxConcurrentRuns != nil {
		found.MaxConcurrentRuns = *c.MaxConcurrentRuns
	}
	return found
}

func (h *Hook) run() *run.Hook {
	if h == nil {
		return nil
	}
	found := &run.Hook{
		URL: h.URL, Headers: h.Headers, SecretRef: h.SecretRef, Timeout: defaultHookTime,
		Critical: given(h.Critical), AllowUnavailable: h.OnUnavailable == UnavailableAllow,
	}
	if h.Timeout != "" {
		found.Timeout = h.Timeout.Value()
	}
	return found
}

func (d Definition) runActions(grace time.Duration) *run.Actions {
	if d.Actions == nil {
		return nil
	}
	convert := func(a *Action) *run.Action {
		if a == nil {
			return nil
		}
		return new(a.run(grace))
	}
	found := &run.Actions{
		OnViolation: convert(d.Actions.OnConstraintViolation),
		OnFailure:   convert(d.Actions.OnFailure), OnSuccess: convert(d.Actions.OnSuccess),
	}
	if len(d.Actions.OnViolationOf) > 0 {
		found.Each = make(map[run.Constraint]run.Action, len(d.Actions.OnViolationOf))
	}
	for name, a := range d.Actions.OnViolationOf {
		found.Each[name] = a.run(grace)
	}
	return found
}

// run returns the action with its defaults for runs with a grace.
func (a Action) run(grace time.Duration) run.Action {
	found := run.Action{Type: a.Type, Critical: given(a.Critical)}
	text := func(name string) string {
		value, _ := a.Parameters[name].(string)
		return value
	}
	switch a.Type {
	case run.ActionRetryLater:
		found.Limit = a.duration("limit", defaultWait)
		found.Delay = min(a.duration("delay", defaultDelay), found.Limit)
	case run.ActionWait:
		found.Limit = a.duration("limit", defaultWait)
	case run.ActionKillOld:
		found.Limit = max(a.duration("limit", defaultKill), grace+killSlack)
	case run.ActionWebhook:
		found.Hook = &run.Hook{URL: text("url"), SecretRef: text("secretRef"), Timeout: a.duration("timeout", defaultHookTime)}
	case run.ActionTriggerJob:
		found.JobID = text("jobId")
	case run.ActionSkip:
	}
	return found
}
