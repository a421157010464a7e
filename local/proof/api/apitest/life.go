package apitest

import (
	"encoding/json"
	"errors"
	"net/url"
	"testing"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/app/token"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// PI is a valid PI.
const PI = "01K9XVBAQZF9EHDRXGBEADTZYY"

// Accept creates a run in state Pending.
func (s *Stage) Accept(t *testing.T) (taskID string) {
	t.Helper()
	submission, err := api.Export(limit.Formats()[0], contract.ExportRequest{PI: PI})
	if err != nil {
		t.Fatal(err)
	}
	submission.Identity, submission.CorrelationID = port.Identity{Tenant: Tenant, Workspace: "main"}, "of-the-test"
	r, _, err := s.System.Submit(t.Context(), submission)
	if err != nil {
		t.Fatal(err)
	}
	return r.TaskID
}

// input returns the input with which the state machine invokes the handler of a step.
func (s *Stage) input(t *testing.T, taskID string, step run.Step) runs.StepInput {
	t.Helper()
	r := s.Run(t, taskID)
	return runs.StepInput{
		Ref: r.Ref(), Step: step, Execution: run.ExecutionName(r.Ref(), r.Execution.Start),
		Generation: r.Wait.Generation, Token: "token-" + string(step),
	}
}

// Admit admits a pending run: it becomes ContainerCreating, or is queued.
func (s *Stage) Admit(t *testing.T, taskID string) {
	t.Helper()
	if _, err := s.System.Admit(t.Context(), s.input(t, taskID, run.StepPending)); err != nil {
		t.Fatal(err)
	}
}

// Launch runs the step ContainerCreating of an admitted run. One that fans out starts its first
// children.
func (s *Stage) Launch(t *testing.T, taskID string) {
	t.Helper()
	if err := s.System.Launch(t.Context(), s.input(t, taskID, run.StepContainerCreating)); err != nil {
		t.Fatal(err)
	}
}

// Start admits a run and starts its machine, so that it is Running. callback is the path and
// query of its CALLBACK_URL.
func (s *Stage) Start(t *testing.T, taskID string) (callback string) {
	t.Helper()
	s.Admit(t, taskID)
	if err := s.System.Launch(t.Context(), s.input(t, taskID, run.StepContainerCreating)); err != nil {
		t.Fatal(err)
	}
	if state := s.Run(t, taskID).State; state != run.Running {
		t.Fatalf("got state %s, want Running", state)
	}
	location, err := url.Parse(s.machines.env(t, s.Run(t, taskID).Attempt.Machine.ID)["CALLBACK_URL"])
	if err != nil {
		t.Fatal(err)
	}
	return location.RequestURI()
}

// Envelope returns the TASK_ENVELOPE of the current attempt. It fails the test if the variable
// does not match the schema TaskEnvelope.
func (s *Stage) Envelope(t *testing.T, taskID string) (envelope contract.TaskEnvelope) {
	t.Helper()
	text := s.machines.env(t, s.Run(t, taskID).Attempt.Machine.ID)[contract.EnvelopeVariable]
	document, err := document()
	if err == nil {
		err = errors.Join(document.CheckSchema("TaskEnvelope", []byte(text)), json.Unmarshal([]byte(text), &envelope))
	}
	if err != nil {
		t.Fatalf("got envelope %q: %v", text, err)
	}
	return envelope
}

// Environment returns the environment of the current attempt's machine.
func (s *Stage) Environment(t *testing.T, taskID string) map[string]string {
	t.Helper()
	return s.machines.env(t, s.Run(t, taskID).Attempt.Machine.ID)
}

// Supervise stores the token of the state Running, as the handler of that state does.
func (s *Stage) Supervise(t *testing.T, taskID string) {
	t.Helper()
	if err := s.System.Supervise(t.Context(), s.input(t, taskID, run.StepRunning)); err != nil {
		t.Fatal(err)
	}
}

// Reconcile invokes the step Reconciling, as the state machine does after a
// timeout.
func (s *Stage) Reconcile(t *testing.T, taskID string) {
	t.Helper()
	if err := s.System.RecordReception(t.Context()); err != nil {
		t.Fatal(err)
	}
	in := s.input(t, taskID, run.StepReconciling)
	in.Carried.Generation = in.Generation
	if _, err := s.System.Reconcile(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

// Report submits a worker's report without HTTP.
func (s *Stage) Report(t *testing.T, taskID string, body contract.Callback) {
	t.Helper()
	r := s.Run(t, taskID)
	bearer := token.Bearer{Claims: token.Claims{
		TenantID: r.Tenant, WorkspaceID: r.Workspace, RunID: r.ID, TaskID: r.TaskID, Attempt: r.Attempt.Number,
	}}
	if err := s.System.Callback(t.Context(), bearer, func(r run.Run) (run.Report, error) { return api.Callback(r, body) }); err != nil {
		t.Fatal(err)
	}
}

// Write sets the log of the machine of the task's current attempt.
func (s *Stage) Write(t *testing.T, taskID, text string) {
	t.Helper()
	id := s.Run(t, taskID).Attempt.Machine.ID
	s.machines.mu.Lock()
	defer s.machines.mu.Unlock()
	s.machines.text[id] = text
}

// Settle runs the step Terminating for a run.
func (s *Stage) Settle(t *testing.T, taskID string) {
	t.Helper()
	if _, err := s.System.Terminate(t.Context(), s.input(t, taskID, run.StepTerminating)); err != nil {
		t.Fatal(err)
	}
}

// LoseMachine ends the machine of the attempt before its worker reports, and settles the
// attempt. The run is then Retrying or Failed.
func (s *Stage) LoseMachine(t *testing.T, taskID string) {
	t.Helper()
	s.machines.end(s.Run(t, taskID).Attempt.Machine.ID)
	if err := s.System.Sweep(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	s.Settle(t, taskID)
}

// Success creates a run that is Completed with an output.
func (s *Stage) Success(t *testing.T, fileName, contentType, content string) (taskID string) {
	t.Helper()
	taskID = s.Accept(t)
	s.Start(t, taskID)
	s.Succeed(t, taskID, fileName, contentType, content)
	return taskID
}

// Succeed completes a running run with an output.
func (s *Stage) Succeed(t *testing.T, taskID, fileName, contentType, content string) {
	t.Helper()
	key, size := limit.OutputPrefix(taskID)+"output.xml", int64(len(content))
	s.Objects.Store(port.Uploads, key, contentType, content)
	s.Report(t, taskID, contract.Callback{
		Status: contract.StatusSuccess, OutputKey: key, OutputFileName: fileName, OutputFileSize: &size,
	})
	s.Settle(t, taskID)
	if state := s.Run(t, taskID).State; state != run.Completed {
		t.Fatalf("got state %s, want Completed", state)
	}
}

// Failure creates a run whose worker reported an error.
func (s *Stage) Failure(t *testing.T, message string) (taskID string) {
	t.Helper()
	taskID = s.Accept(t)
	s.Start(t, taskID)
	s.Report(t, taskID, contract.Callback{Status: contract.StatusError, Error: message})
	s.Settle(t, taskID)
	return taskID
}
