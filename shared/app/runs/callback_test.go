package runs_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestCallbackIsFenced checks every row of the worker contract's callback table. A
// refused callback changes nothing.
//
// Rule 4 of shared/README.md.
func TestCallbackIsFenced(t *testing.T) {
	t.Parallel()
	failure := contract.Callback{Status: contract.StatusError, Error: "Failed to fetch manifest"}
	for name, test := range map[string]struct {
		play func(h *fixture, task string)
		body contract.Callback
		code fault.Code // empty if the callback is accepted
		want run.State
	}{
		"first":                {func(*fixture, string) {}, success(), "", run.Terminating},
		"first with an error":  {func(*fixture, string) {}, failure, "", run.Terminating},
		"repeated at once":     {func(h *fixture, _ string) { h.ok(h.report(h.runner.launched[0], success())) }, success(), "", run.Terminating},
		"repeated after a day": {func(h *fixture, _ string) { h.finish(success()); h.advance(40 * time.Minute) }, success(), "", run.Completed},
		"contradicting": {
			func(h *fixture, _ string) { h.ok(h.report(h.runner.launched[0], success())) }, failure, fault.TaskAlreadyTerminal, run.Terminating,
		},
		"contradicting after the end": {func(h *fixture, _ string) { h.finish(failure) }, success(), fault.TaskAlreadyTerminal, run.Failed},
		"after the attempt's end": {func(h *fixture, _ string) {
			h.runner.launched[0].exit(1)
			h.sweep()
		}, success(), fault.TaskExpired, run.Retrying},
		"of an earlier attempt": {func(h *fixture, _ string) {
			h.runner.launched[0].exit(1)
			h.sweep()
			h.advance(3 * time.Second)
		}, success(), fault.AttemptMismatch, run.Running},
		"first after a cancel request": {func(h *fixture, task string) { h.cancel(task) }, success(), "", run.Terminating},
		"after the cancelled worker's end": {func(h *fixture, task string) {
			h.cancel(task)
			h.step()
			h.sweep()
		}, success(), "", run.Cancelled},
		"after the time limit": {func(h *fixture, _ string) {
			h.advance(10*time.Minute + 2*time.Second)
			h.advance(3 * time.Second)
			h.advance(10*time.Minute + 2*time.Second)
		}, success(), fault.AttemptMismatch, run.Failed},
		"with an expired token": {func(h *fixture, _ string) { h.advance(2 * time.Hour) }, success(), fault.Unauthenticated, run.Failed},
		"without a token":       {func(h *fixture, _ string) { h.runner.launched[0].spec.Env["CALLBACK_URL"] = "http://sortie/callback/x" }, success(), fault.Unauthenticated, run.Running},
		"with a forged token": {func(h *fixture, _ string) {
			env := h.runner.launched[0].spec.Env
			env["CALLBACK_URL"] = strings.TrimSuffix(env["CALLBACK_URL"], env["CALLBACK_URL"][len(env["CALLBACK_URL"])-8:]) + "AAAAAAAA"
		}, success(), fault.Unauthenticated, run.Running},
		"with another task's token": {func(h *fixture, _ string) {
			h.post()
			h.runner.launched[0].spec.Env["CALLBACK_URL"] = h.runner.last().spec.Env["CALLBACK_URL"]
		}, success(), fault.Forbidden, run.Running},
		"with another task's body": {func(*fixture, string) {}, contract.Callback{TaskID: "export_mods_1_00000000", Status: contract.StatusSuccess}, fault.TaskMismatch, run.Running},
		"with another batch":       {func(*fixture, string) {}, contract.Callback{BatchID: "another", Status: contract.StatusSuccess}, fault.TaskMismatch, run.Running},
		"with its own batch":       {func(*fixture, string) {}, contract.Callback{BatchID: "single", Status: contract.StatusSuccess}, "", run.Terminating},
		"with another task's output": {
			func(*fixture, string) {},
			contract.Callback{Status: contract.StatusSuccess, OutputKey: "exports/other/out.xml", OutputFileName: "out.xml", OutputFileSize: new(int64)},
			fault.InvalidRequest, run.Running,
		},
		"with an empty body": {func(*fixture, string) {}, contract.Callback{}, fault.InvalidRequest, run.Running},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			task := h.post()
			test.play(h, task)
			before := h.record(task)
			err := h.report(h.runner.launched[0], test.body)
			if test.code == "" && err != nil || test.code != "" && !fault.Is(err, test.code) {
				t.Errorf("got %v, want %q", err, test.code)
			}
			after := h.wantState(task, test.want)
			if test.code != "" && after.Version != before.Version {
				t.Errorf("got version %d after a refusal, want %d", after.Version, before.Version)
			}
		})
	}
}

// finish reports from the first worker and completes the run.
func (h *fixture) finish(body contract.Callback) {
	h.Helper()
	h.ok(h.report(h.runner.launched[0], body))
	h.step()
}

// TestCallbackTokenOutlivesItsAttempt checks that a callback token is valid until
// one hour after the attempt's deadline.
//
// Rule 4 of shared/README.md.
func TestCallbackTokenOutlivesItsAttempt(t *testing.T) {
	t.Parallel()
	h := setup(t)
	task := h.post()
	address, err := url.Parse(h.runner.last().spec.Env["CALLBACK_URL"])
	h.ok(err)
	until := h.record(task).Deadline().Add(time.Hour)
	verify := func() error {
		_, err := h.service.AuthenticateCallback(h.Context(), address.Query().Get("token"), task)
		return err
	}
	h.clock.to(until.Add(-time.Second))
	h.ok(verify())
	h.clock.to(until.Add(time.Second))
	if err := verify(); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("got %v after the token expired, want %s", err, fault.Unauthenticated)
	}
}

// TestTokenAuthorizesOneAttempt sends the token of an earlier attempt in calls of
// the next one.
//
// Rule 4 of shared/README.md.
func TestTokenAuthorizesOneAttempt(t *testing.T) {
	t.Parallel()
	h := setup(t)
	task := h.post()
	older := h.worker(h.runner.last())
	h.ok(older.started(false))
	_, err := older.heartbeat()
	h.ok(err)
	h.runner.last().exit(1)
	h.sweep()
	h.advance(3 * time.Second)
	newer := h.worker(h.runner.last())
	h.ok(newer.started(false))
	h.advance(time.Second)
	before := h.wantState(task, run.Running)
	contacted, err := h.store.LastHeartbeat(t.Context(), before.Ref())
	h.ok(err)
	bearer := older.bearer()
	calls := map[string]func() error{
		"started": func() error {
			_, err := h.service.Started(t.Context(), bearer, contract.TaskStarted{Attempt: 2, WorkerID: newer.id})
			return err
		},
		"heartbeat": func() error {
			_, err := h.service.Heartbeat(t.Context(), bearer, contract.TaskHeartbeat{Attempt: 2, WorkerID: newer.id})
			return err
		},
		"completed": func() error {
			_, _, err := h.service.Completed(t.Context(), bearer, contract.TaskCompleted{
				Attempt: 2, WorkerID: newer.id, Outcome: contract.OutcomeSucceeded,
			})
			return err
		},
	}
	for name, call := range calls {
		if err := call(); !fault.Is(err, fault.Forbidden) || bearer.Attempt != 1 {
			t.Errorf("%s for attempt 2: got %v with the token of attempt %d, want %s", name, err, bearer.Attempt, fault.Forbidden)
		}
	}
	now, err := h.store.LastHeartbeat(t.Context(), before.Ref())
	h.ok(err)
	h.equal(contacted, now)
	h.equal(before, h.record(task))
}
