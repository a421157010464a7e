package run_test

import (
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// constrain gives the run a job with constraints and an action: "action" is its type, "limit"
// and "delay" are its parameters, "for" is the only constraint to which it applies.
func (s *teller) constrain(t *testing.T, d *datadriven.TestData, r *run.Run) {
	if d.HasArg("constrained") {
		constrain(r, run.ActionWait)
	}
	if d.HasArg("expected") {
		constrain(r, run.ActionSkip)
		*r.Constraints = run.Constraints{MaxExpectedRunTime: duration(t, d, "expected")}
	}
	if d.HasArg("ends") {
		constrain(r, run.ActionSkip)
		r.Work.Kind = spec.KindJob
		*r.Constraints = run.Constraints{MaxExpectedRunTime: 10 * time.Minute, PostRunHook: &run.Hook{URL: "https://example.org", Critical: d.HasArg("critical")}}
		webhook := run.Action{Type: run.ActionWebhook, Hook: &run.Hook{URL: "https://example.org"}}
		r.Actions = &run.Actions{
			OnSuccess: &webhook, OnFailure: &run.Action{Type: run.ActionTriggerJob, JobID: "repair"},
			Each: map[run.Constraint]run.Action{run.PostRunHook: webhook, run.MaxExpectedRunTime: {Type: run.ActionSkip}},
		}
	}
	if d.HasArg("lists") {
		constrain(r, run.ActionSkip)
		r.Work.Kind = spec.KindJob
		*r.Constraints = run.Constraints{MaxExpectedRunTime: 10 * time.Minute}
		webhook := run.Action{Type: run.ActionWebhook, Hook: &run.Hook{URL: "https://example.org"}}
		trigger := run.Action{Type: run.ActionTriggerJob, JobID: "repair"}
		r.Actions = &run.Actions{
			OnSuccess: &webhook, OnRetry: &webhook, OnLate: &trigger,
			Further: map[run.EndAction][]run.Action{run.OnSuccess: {trigger, webhook}, run.OnRetry: {trigger}},
		}
	}
	if d.HasArg("on-skip") {
		defer func() {
			r.JobID = "nightly"
			if r.Actions == nil {
				r.Actions = &run.Actions{}
			}
			informs := run.Action{Type: run.ActionType(word(t, d, "on-skip")), JobID: "repair", Hook: &run.Hook{URL: "https://example.org"}}
			r.Actions.OnSuccess, r.Actions.OnFailure, r.Actions.OnSkip = &informs, &informs, &informs
		}()
	}
	if !d.HasArg("action") {
		return
	}
	constrain(r, run.ActionType(word(t, d, "action")))
	action := run.Action{
		Type: run.ActionType(word(t, d, "action")), Critical: d.HasArg("critical"), Limit: duration(t, d, "limit"), Delay: duration(t, d, "delay"),
	}
	d.MaybeScanArgs(t, "retries", &action.MaxRetries)
	r.Actions = &run.Actions{OnViolation: &action}
	if d.HasArg("alone") { // no other constraint than maxConcurrentRuns
		r.Constraints.RequirePreviousSuccess, r.Constraints.CatchUpWindow, r.Constraints.PreRunHook = false, 0, nil
	}
	if d.HasArg("for") {
		r.Actions = &run.Actions{Each: map[run.Constraint]run.Action{run.Constraint(word(t, d, "for")): action}}
	}
	if r.Constraints.PreRunHook != nil {
		r.Constraints.PreRunHook.Critical = d.HasArg("critical-hook")
	}
	if d.HasArg("slots") {
		d.ScanArgs(t, "slots", &r.Constraints.MaxConcurrentRuns)
	}
}

// checked returns the fact of an evaluation. "violated" lists the violated constraints.
func (s *teller) checked(t *testing.T, d *datadriven.TestData) run.Checked {
	limit := 0
	if s.run.Constraints != nil {
		limit = s.run.Constraints.MaxConcurrentRuns
	}
	return s.run.Evaluation(s.violations(t, d), limit)
}

// slots returns Checked.Slots for the run. "slots" is the current limit of the job.
func (s *teller) slots(t *testing.T, d *datadriven.TestData) int {
	limit := 0
	if s.run.Constraints != nil {
		limit = s.run.Constraints.MaxConcurrentRuns
	}
	d.MaybeScanArgs(t, "slots", &limit)
	return s.run.JobLimit(limit)
}

func (s *teller) violations(t *testing.T, d *datadriven.TestData) []run.ConstraintViolation {
	if !d.HasArg("violated") {
		return nil
	}
	var names []run.Constraint
	for _, arg := range d.CmdArgs {
		if arg.Key == "violated" {
			for _, name := range arg.Vals {
				names = append(names, run.Constraint(name))
			}
		}
	}
	found := violated(names...)
	for i := range found {
		found[i].Unchecked = d.HasArg("unchecked")
		found[i].Awaits = d.HasArg("awaits")
	}
	return found
}

// constrain gives the run a job with two slots, every constraint and the action.
func constrain(r *run.Run, action run.ActionType) {
	r.JobID = "nightly"
	r.Constraints = &run.Constraints{
		MaxConcurrentRuns: 2, RequirePreviousSuccess: true, CatchUpWindow: time.Hour, PreRunHook: &run.Hook{URL: "https://example.org"},
	}
	r.Actions = &run.Actions{OnViolation: &run.Action{Type: action}}
}

func violated(names ...run.Constraint) []run.ConstraintViolation {
	var found []run.ConstraintViolation
	for _, name := range names {
		found = append(found, run.ConstraintViolation{Constraint: name, Message: "observed"})
	}
	return found
}

func duration(t *testing.T, d *datadriven.TestData, key string) time.Duration {
	if !d.HasArg(key) {
		return 0
	}
	length, err := time.ParseDuration(word(t, d, key))
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return length
}

// program returns the program of a job; nil without the argument "program", which is its
// completion.
func program(t *testing.T, d *datadriven.TestData) *spec.Program {
	if !d.HasArg("program") {
		return nil
	}
	p := &spec.Program{Completion: spec.Completion(word(t, d, "program"))}
	for name, codes := range map[string]*[]int{"success": &p.ExitCodes.Success, "retry": &p.ExitCodes.Retry, "fail": &p.ExitCodes.Fail} {
		if code := -1; d.MaybeScanArgs(t, name, &code) {
			*codes = []int{code}
		}
	}
	if d.HasArg("output") {
		p.Output = &spec.ProgramOutput{Path: "report.txt", FileName: "report.txt"}
	}
	return p
}
