package runs_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// runProgram runs a program until its machine has ended with the exit code.
func (h *fixture) runProgram(p spec.Program, code int) (task string) {
	h.Helper()
	task = h.accept()
	h.program(task, p)
	h.step()
	h.wantState(task, run.Running)
	h.runner.last().exit(code)
	return task
}

// The worker never calls: the sweep sees the machine gone, and its exit code decides.
func TestExitCodeOfAPlainProgramDecides(t *testing.T) {
	t.Parallel()
	h := setup(t)
	task := h.runProgram(spec.Program{Command: []string{"--all"}}, 0)
	if got := h.runner.last().spec.Command; !slices.Equal(got, []string{"--all"}) {
		t.Errorf("got command %q, want --all", got)
	}
	h.sweep()
	h.step()
	if r := h.wantState(task, run.Completed); r.Attempt.Exit == nil || r.Attempt.Exit.Code != 0 || r.Output != nil {
		t.Errorf("got exit %+v and output %+v, want code 0 and none", r.Attempt.Exit, r.Output)
	}
	failed := h.runProgram(spec.Program{ExitCodes: spec.ExitCodes{Fail: []int{3}}}, 3)
	h.sweep()
	h.step()
	if r := h.wantState(failed, run.Failed); r.Fault.Code != fault.ProgramExit || !strings.Contains(r.Fault.Message, "code 3") || r.Attempt.Number != 1 {
		t.Errorf("got %+v in attempt %d, want %s with the code in attempt 1", r.Fault, r.Attempt.Number, fault.ProgramExit)
	}
}

// A program without calls runs until its time limit: no heartbeat is missed.
func TestPlainProgramNeedsNoHeartbeats(t *testing.T) {
	t.Parallel()
	h := setup(t)
	task := h.accept()
	h.program(task, spec.Program{})
	h.step()
	policy := h.record(task).Policy
	for range 5 {
		h.advance(policy.HeartbeatTimeout + time.Second)
		h.sweep()
	}
	h.wantState(task, run.Running)
}

// The file of a plain program is what it uploaded to the URL of its envelope.
func TestUploadOfAPlainProgramIsItsOutput(t *testing.T) {
	t.Parallel()
	h := setup(t)
	output := &spec.ProgramOutput{Path: "report.csv", FileName: "report.csv", ContentType: "text/csv"}
	task := h.runProgram(spec.Program{Output: output}, 0)
	h.outputs.buckets[port.Uploads][limit.AttemptOutput(task, 1)] = "a,b"
	h.sweep()
	h.step()
	if r := h.wantState(task, run.Completed); r.Output == nil || r.Output.FileName != "report.csv" || r.Output.Size != 3 || r.Work.ContentType() != "text/csv" {
		t.Errorf("got output %+v, want report.csv of 3 bytes", r.Output)
	}
	without := h.runProgram(spec.Program{Output: output}, 0)
	h.sweep()
	h.step()
	if r := h.record(without); r.Fault == nil || r.Fault.Code != fault.OutputMissing {
		t.Errorf("got %s with %+v, want %s", r.State, r.Fault, fault.OutputMissing)
	}
}
