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
		constrain(r, spec.ActionWait)
	}
	if d.HasArg("expected") {
		constrain(r, spec.ActionSkip)
		*r.Constraints = spec.Constraints{MaxExpectedRunTime: duration(t, d, "expected")}
	}
	if d.HasArg("ends") {
		constrain(r, spec.ActionSkip)
		r.Work.Kind = spec.KindJob
		*r.Constraints = spec.Constraints{MaxExpectedRunTime: 10 * time.Minute, PostRunHook: &spec.Hook{URL: "https://example.org", Critical: d.HasArg("critical")}}
		webhook := spec.Action{Type: spec.ActionWebhook, Hook: &spec.Hook{URL: "https://example.org"}}
		r.Actions = &spec.Actions{
			OnSuccess: &webhook, OnFailure: &spec.Action{Type: spec.ActionTriggerJob, JobID: "repair"},
			Each: map[spec.Constraint]spec.Action{spec.PostRunHook: webhook, spec.MaxExpectedRunTime: {Type: spec.ActionSkip}},
		}
	}
	if d.HasArg("lists") {
		constrain(r, spec.ActionSkip)
		r.Work.Kind = spec.KindJob
		*r.Constraints = spec.Constraints{MaxExpectedRunTime: 10 * time.Minute}
		webhook := spec.Action{Type: spec.ActionWebhook, Hook: &spec.Hook{URL: "https://example.org"}}
		trigger := spec.Action{Type: spec.ActionTriggerJob, JobID: "repair"}
		r.Actions = &spec.Actions{
			OnSuccess: &webhook, OnRetry: &webhook, OnLate: &trigger,
			Further: map[spec.EndAction][]spec.Action{spec.OnSuccess: {trigger, webhook}, spec.OnRetry: {trigger}},
		}
	}
	if d.HasArg("on-skip") {
		defer func() {
			r.JobID = "nightly"
			if r.Actions == nil {
				r.Actions = &spec.Actions{}
			}
			informs := spec.Action{Type: spec.ActionType(word(t, d, "on-skip")), JobID: "repair", Hook: &spec.Hook{URL: "https://example.org"}}
			r.Actions.OnSuccess, r.Actions.OnFailure, r.Actions.OnSkip = &informs, &informs, &informs
		}()
	}
	if !d.HasArg("action") {
		return
	}
	constrain(r, spec.ActionType(word(t, d, "action")))
	action := spec.Action{
		Type: spec.ActionType(word(t, d, "action")), Critical: d.HasArg("critical"), Limit: duration(t, d, "limit"), Delay: duration(t, d, "delay"),
	}
	d.MaybeScanArgs(t, "retries", &action.MaxRetries)
	r.Actions = &spec.Actions{OnViolation: &action}
	if d.HasArg("alone") { // no other constraint than maxConcurrentRuns
		r.Constraints.RequirePreviousSuccess, r.Constraints.CatchUpWindow, r.Constraints.PreRunHook = false, 0, nil
	}
	if d.HasArg("for") {
		r.Actions = &spec.Actions{Each: map[spec.Constraint]spec.Action{spec.Constraint(word(t, d, "for")): action}}
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

func (s *teller) violations(t *testing.T, d *datadriven.TestData) []spec.ConstraintViolation {
	if !d.HasArg("violated") {
		return nil
	}
	var names []spec.Constraint
	for _, arg := range d.CmdArgs {
		if arg.Key == "violated" {
			for _, name := range arg.Vals {
				names = append(names, spec.Constraint(name))
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
func constrain(r *run.Run, action spec.ActionType) {
	r.JobID = "nightly"
	r.Constraints = &spec.Constraints{
		MaxConcurrentRuns: 2, RequirePreviousSuccess: true, CatchUpWindow: time.Hour, PreRunHook: &spec.Hook{URL: "https://example.org"},
	}
	r.Actions = &spec.Actions{OnViolation: &spec.Action{Type: action}}
}

func violated(names ...spec.Constraint) []spec.ConstraintViolation {
	var found []spec.ConstraintViolation
	for _, name := range names {
		found = append(found, spec.ConstraintViolation{Constraint: name, Message: "observed"})
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
