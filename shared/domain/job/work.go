package job

import (
	"cmp"
	"path"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fan"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// defaultHookTime is the default time limit of one request to a hook.
const defaultHookTime = 10 * time.Second

// Run returns a run with the work, policy, constraints, actions and pool of the definition.
// defaults is the policy of the deployment. The run has no identity.
func (d Definition) Run(defaults spec.Policy) run.Run {
	policy, _ := d.policy(defaults)
	inputs, _ := d.InputValues(nil)
	return run.Run{
		Inputs: inputs,
		Work:   d.work(), Policy: policy, JobID: d.ID, Slot: platform.Slot{Pool: d.Pool},
		Constraints: d.constraints(), Actions: d.runActions(),
		Priority: d.Priority, Concurrency: d.concurrency(), Labels: d.Labels,
	}
}

func (d Definition) concurrency() *spec.Concurrency {
	if d.ConcurrencyKey == "" && d.FansOut() && d.ID != "" {
		return &spec.Concurrency{Key: "children:" + d.ID, Limit: fan.MaxParents}
	}
	if d.ConcurrencyKey == "" {
		return nil
	}
	found := &spec.Concurrency{Key: d.ConcurrencyKey, Limit: 1}
	if c := d.Concurrency; c != nil {
		if c.Limit != nil {
			found.Limit = *c.Limit
		}
		if c.QueueLimit != nil {
			found.QueueLimit = *c.QueueLimit
		}
		found.Overflow = c.Overflow
	}
	return found
}

// Run returns a run of the current version of the job, without ids and trigger.
func (j Job) Run(defaults spec.Policy) run.Run {
	r := j.Definition.Run(defaults)
	r.Tenant, r.Workspace, r.JobVersion = j.Tenant, cmp.Or(j.Workspace, j.Tenant), j.Version
	r.Followers = j.Followers
	return r
}

func (d Definition) work() spec.Work {
	work := spec.Work{Kind: spec.KindJob}
	if d.Export != nil {
		work = d.Export.Work()
	} else {
		work.Program = d.program()
	}
	work.PodSpec, work.Fan = d.PodSpec, d.fan()
	work.Image, work.BucketCredentials, work.Resources.Region = d.Image, d.BucketCredentials, d.Region
	if r := d.Resources; r != nil && r.CPUs != nil {
		work.Resources.CPUs = *r.CPUs
	}
	if r := d.Resources; r != nil && r.MemoryMB != nil {
		work.Resources.MemoryMB = *r.MemoryMB
	}
	return work
}

func (d Definition) program() *spec.Program {
	program := &spec.Program{Command: d.Command, Completion: spec.CompletionExit, DropLogs: d.Logs == LogsDrop}
	if d.Completion != "" {
		program.Completion = d.Completion
	}
	if d.ExitCodes != nil {
		program.ExitCodes = *d.ExitCodes
	}
	if len(d.Env) > 0 {
		program.Env = make(map[string]spec.Variable, len(d.Env))
	}
	for name, v := range d.Env {
		program.Env[name] = spec.Variable(v)
	}
	if d.Input != "" {
		program.Input = &spec.Input{Text: d.Input, Size: int64(len(d.Input))}
	}
	if o := d.Output; o != nil {
		program.Output = &spec.ProgramOutput{Path: o.Path, FileName: o.FileName, ContentType: o.ContentType}
		if o.FileName == "" {
			program.Output.FileName = path.Base(o.Path)
		}
	}
	return program
}

// MaxConcurrentRuns returns the maximum number of concurrent runs; 0 means no limit.
func (d Definition) MaxConcurrentRuns() int {
	if d.Constraints == nil || d.Constraints.MaxConcurrentRuns == nil {
		return 0
	}
	return *d.Constraints.MaxConcurrentRuns
}

func (d Definition) constraints() *spec.Constraints {
	c := d.Constraints
	if c == nil {
		return nil
	}
	found := &spec.Constraints{
		RequirePreviousSuccess: given(c.RequirePreviousSuccess), CatchUpWindow: c.CatchUpWindow.Value(),
		MaxExpectedRunTime: c.MaxExpectedRunTime.Value(),
		PreRunHook:         c.PreRunHook.run(c.OnUnavailable), PostRunHook: c.PostRunHook.run(c.OnUnavailable),
	}
	found.MaxConcurrentRuns = d.MaxConcurrentRuns()
	return found
}

// run converts the hook. others is the job's rule for a hook without its own rule.
func (h *Hook) run(others Unavailable) *spec.Hook {
	if h == nil {
		return nil
	}
	found := &spec.Hook{
		URL: h.URL, Headers: h.Headers, SecretRef: h.SecretRef, Timeout: defaultHookTime,
		Critical: given(h.Critical), AllowUnavailable: cmp.Or(h.OnUnavailable, others) == UnavailableAllow,
	}
	if h.Timeout != "" {
		found.Timeout = h.Timeout.Value()
	}
	return found
}

func (d Definition) runActions() *spec.Actions {
	if d.Actions == nil {
		return nil
	}
	convert := func(a *Action) *spec.Action {
		if a == nil {
			return nil
		}
		return new(a.run())
	}
	found := &spec.Actions{
		OnViolation: convert(d.Actions.OnConstraintViolation),
	}
	found.OnFailure = d.Actions.OnFailure.first(spec.OnFailure, &found.Further)
	found.OnSuccess = d.Actions.OnSuccess.first(spec.OnSuccess, &found.Further)
	found.OnSkip = d.Actions.OnSkip.first(spec.OnSkip, &found.Further)
	found.OnRetry = d.Actions.OnRetry.first(spec.OnRetry, &found.Further)
	found.OnLate = d.Actions.OnLate.first(spec.OnLate, &found.Further)
	if len(d.Actions.OnViolationOf) > 0 {
		found.Each = make(map[spec.Constraint]spec.Action, len(d.Actions.OnViolationOf))
	}
	for name, a := range d.Actions.OnViolationOf {
		found.Each[name] = a.run()
	}
	return found
}

// run converts the action and applies the defaults.
func (a Action) run() spec.Action {
	found := spec.Action{Type: a.Type, Critical: given(a.Critical)}
	text := func(name string) string {
		value, _ := a.Parameters[name].(string)
		return value
	}
	switch a.Type {
	case spec.ActionRetryLater:
		found.Limit = a.duration("limit", spec.ActionLimit)
		found.Delay = a.duration("delay", min(spec.ActionDelay, found.Limit/2))
		if n, ok := a.Parameters["maxRetries"].(float64); ok {
			found.MaxRetries = int(n)
		}
	case spec.ActionWait:
		found.Limit = a.duration("limit", spec.ActionLimit)
	case spec.ActionKillOld:
		found.Limit = a.duration("limit", spec.KillLimit)
	case spec.ActionNotify:
		found.Hook = a.notice()
	case spec.ActionWebhook:
		found.Hook = &spec.Hook{URL: text("url"), SecretRef: text("secretRef"), Timeout: a.duration("timeout", defaultHookTime)}
		if body := text("body"); body != "" {
			found.Hook.Notice = &spec.Notice{Body: body}
		}
	case spec.ActionTriggerJob:
		found.JobID, found.Parameters = text("jobId"), a.triggerParameters()
	case spec.ActionSkip:
	}
	return found
}
