package runs_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/jobs"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/explain"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// content returns the content of the store.
func (h *fixture) content() []byte {
	h.Helper()
	file := filepath.Join(h.TempDir(), "copy.db")
	h.ok(h.db.Backup(h.Context(), file))
	content, err := os.ReadFile(file)
	h.ok(err)
	return content
}

// nightly returns the job of the tests.
func (h *fixture) nightly() job.Ref { return job.Ref{Tenant: client.Tenant, ID: "nightly"} }

// planned plans a run of the job.
func (h *fixture) planned(in jobs.RunRequest) explain.Planned {
	h.Helper()
	in.Identity = client
	p, err := h.service.Explanations.PlanJob(h.Context(), in)
	h.ok(err)
	return p
}

// TestPlanIsWhatHappens checks that the explanation of a run equals its plan, in several states
// of the pool and the job.
func TestPlanIsWhatHappens(t *testing.T) {
	t.Parallel()
	const limited = "constraints: {maxConcurrentRuns: 1}\n"
	for name, row := range map[string]struct {
		job    string
		before int // runs of the job
		others int // exports
		want   explain.Reason
		is     explain.Reason // reason of the created run
	}{
		"free":                {"", 0, 0, explain.StartsNow, explain.Running},
		"full pool":           {"", 0, 3, explain.PoolFull, explain.PoolFull},
		"skipped":             {limited, 1, 0, explain.Skipped, explain.Skipped},
		"waits for its job":   {limited + "actions: {onConstraintViolation: {type: wait}}\n", 1, 0, explain.JobFull, explain.JobFull},
		"waits in its queue":  {limited + "actions: {onConstraintViolation: {type: wait}}\n", 2, 0, explain.JobFull, explain.JobFull},
		"checks again":        {limited + "actions: {onConstraintViolation: {type: retry_later}}\n", 1, 0, explain.ActionDelayed, explain.ActionDelayed},
		"met":                 {limited, 0, 1, explain.StartsNow, explain.Running},
		"full pool and a job": {limited, 1, 2, explain.PoolFull, explain.PoolFull},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t, func(c *runs.Config) { c.MaxMachines = 2 })
			h.createJob("nightly", row.job)
			request := jobs.RunRequest{Identity: client, JobID: "nightly"}
			for range row.before {
				_, _, err := h.service.Jobs.RunJob(h.Context(), request)
				h.ok(err)
				h.step()
				h.clock.to(h.clock.now.Add(time.Second))
			}
			for range row.others {
				h.post()
				h.clock.to(h.clock.now.Add(time.Second))
			}
			before := h.content()
			p := h.planned(request)
			if !bytes.Equal(before, h.content()) {
				t.Error("got a store that the plan changed, want the same bytes")
			}
			if p.Reason != row.want || !p.Accepted {
				t.Errorf("got %s: %s, accepted %t; want %s, accepted", p.Reason, p.Message, p.Accepted, row.want)
			}
			r, _, err := h.service.Jobs.RunJob(h.Context(), request)
			h.ok(err)
			h.step()
			x, err := h.service.Explanations.ExplainRun(h.Context(), client, r.ID)
			h.ok(err)
			if x.Reason != row.is || x.Position != p.Position && row.is != explain.Running {
				t.Errorf("got %s at %d of the run: %s; want %s at %d", x.Reason, x.Position, x.Message, row.is, p.Position)
			}
		})
	}
}

// TestPlanPlacesByPriorityAndTurns plans and creates runs one after another. Each gets the
// position of its plan, which may be ahead of earlier runs.
func TestPlanPlacesByPriorityAndTurns(t *testing.T) {
	t.Parallel()
	h := setup(t, oneMachine)
	h.createJob("nightly", "")
	for range 3 {
		h.post()
		h.clock.to(h.clock.now.Add(time.Second))
	}
	for i, row := range []struct {
		priority spec.Priority
		key      string
		want     int
	}{
		{"", "", 2},
		{spec.PriorityBatch, "", 3},
		{spec.PriorityInteractive, "a", 0},
		{spec.PriorityInteractive, "a", 0}, // of the key's queue
		{spec.PriorityInteractive, "a", 1},
		{spec.PriorityInteractive, "b", 1},
		{spec.PriorityBatch, "", 6},
	} {
		request := jobs.RunRequest{Identity: client, JobID: "nightly", Override: spec.Override{Priority: row.priority, Key: row.key}}
		p := h.planned(request)
		r, _, err := h.service.Jobs.RunJob(h.Context(), request)
		h.ok(err)
		h.step()
		x, err := h.service.Explanations.ExplainRun(h.Context(), client, r.ID)
		h.ok(err)
		if p.Position != row.want || x.Position != row.want || x.Reason != p.Reason {
			t.Errorf("run %d: got a plan of %s at %d and %s at %d, want %d", i, p.Reason, p.Position, x.Reason, x.Position, row.want)
		}
		h.clock.to(h.clock.now.Add(time.Second))
	}
}

func TestPlanOfADefinitionChangesNothing(t *testing.T) {
	t.Parallel()
	h := setup(t, oneMachine)
	h.post()
	before := h.content()
	p, err := h.service.Explanations.PlanOnce(h.Context(), client, []byte(`{"image": "worker"}`))
	h.ok(err)
	if p.Reason != explain.PoolFull || p.Position != 0 || p.Expected == nil {
		t.Errorf("got %s at %d, expected %+v; want %s at 0 with a time", p.Reason, p.Position, p.Expected, explain.PoolFull)
	}
	if _, err := h.service.Explanations.PlanOnce(h.Context(), client, []byte(`{"image": ""}`)); !fault.Is(err, fault.InvalidRequest) {
		t.Errorf("got %v for a definition without an image, want %s", err, fault.InvalidRequest)
	}
	if !bytes.Equal(before, h.content()) {
		t.Error("got a store that the plan changed, want the same bytes")
	}
	h.post()
	if bytes.Equal(before, h.content()) {
		t.Error("got the same bytes after a change, want others: the comparison is void")
	}
}

func TestPlanOfAFiring(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.createJob("nightly", "constraints: {requirePreviousSuccess: true, preRunHook: {url: \"https://hooks.example.com/secret\"}}\n")
	request := jobs.RunRequest{JobID: "nightly", ScheduledAt: h.clock.now.Add(time.Hour)}
	p := h.planned(request)
	if p.Reason != explain.Scheduled || !p.Until.Equal(request.ScheduledAt) || p.Expected == nil || p.Expected.P50.Before(request.ScheduledAt) {
		t.Errorf("got %s until %s, expected %+v; want %s at its time", p.Reason, p.Until, p.Expected, explain.Scheduled)
	}
	for _, c := range p.Checks {
		if c.Known || strings.Contains(c.Message, "secret") {
			t.Errorf("got %+v, want a check that is not known, without the path of a hook", c)
		}
	}
	request.Identity = client
	_, _, err := h.service.Jobs.RunJob(h.Context(), request)
	h.ok(err)
	if _, err := h.service.Explanations.PlanJob(h.Context(), request); !fault.Is(err, fault.Unprocessable) || fault.Of(err).Field != "scheduledAt" {
		t.Errorf("got %v for a firing that exists, want %s", err, fault.Unprocessable)
	}
}

// TestJobExplanations brings a job into a state for each reason.
func TestJobExplanations(t *testing.T) {
	t.Parallel()
	const every = "schedule: \"@every 10m\"\n"
	for reason, row := range map[explain.JobReason]struct {
		job    string
		do     func(h *fixture)
		change explain.ChangeKind
		last   string
	}{
		explain.JobUnscheduled: {"", func(*fixture) {}, explain.SetSchedule, ""},
		explain.JobWaiting: {every, func(h *fixture) {
			h.clock.to(epoch.Add(26 * time.Minute))
			h.fire(h.nightly())
		}, "", "Completed firings_missed: 2 firings until 2026-03-01T08:20:00Z were skipped: missed, since a later one was due too or it was too late"},
		explain.JobFiring: {every, func(h *fixture) { h.clock.to(epoch.Add(10*time.Minute + time.Second)) }, "", ""},
		explain.JobLate:   {every, func(h *fixture) { h.clock.to(epoch.Add(12 * time.Minute)) }, "", ""},
		explain.JobPaused: {every, func(h *fixture) {
			_, err := h.service.Jobs.Pause(h.Context(), client, "nightly", change.Precondition{})
			h.ok(err)
		}, explain.ResumeJob, ""},
		explain.JobOver: {"schedule: \"@at 2026-03-01T09:00:00Z\"\n", func(h *fixture) { h.wake(h.nightly()) }, explain.SetSchedule, "Running running: attempt 1 runs since 2026-03-01T09:00:00Z"},
	} {
		t.Run(string(reason), func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			h.createJob("nightly", row.job)
			row.do(h)
			x, err := h.service.Explanations.ExplainJob(h.Context(), client, "nightly")
			h.ok(err)
			change, last := explain.ChangeKind(""), ""
			if x.Change != nil {
				change = x.Change.Kind
			}
			if f := x.Last; f != nil {
				last = fmt.Sprintf("%s %s: %s", f.Run.State, f.Reason, f.Message)
			}
			if x.Reason != reason || change != row.change || last != row.last {
				t.Errorf("got %s (%s), change %q, last %q; want %s, %q, %q", x.Reason, x.Message, change, last, reason, row.change, row.last)
			}
		})
	}
	if got := len(explain.JobReasons()); got != 8 { // TestExplainAwaitedJobs has two
		t.Errorf("got %d reasons, want each in this test", got)
	}
}

// TestRunRecordsItsPrediction queues a run behind measured ones. Its start is predicted
// from them, and the error is recorded at its start.
func TestRunRecordsItsPrediction(t *testing.T) {
	t.Parallel()
	h := setup(t, oneMachine)
	for range 8 {
		task := h.post()
		h.advance(50 * time.Second)
		h.ok(h.report(h.runner.last(), success()))
		h.step()
		h.wantState(task, run.Completed)
	}
	h.advance(2 * time.Minute) // the measured runs are read again
	first := h.post()
	h.advance(10 * time.Second)
	second := h.post()
	p := h.record(second).Prediction
	if p == nil || p.Measured != 8 || !p.At.Equal(h.clock.now) || p.P50 < 30_000 || p.P50 > 50_000 || p.P90 < p.P50 || !p.Started.IsZero() {
		t.Fatalf("got prediction %+v, want about 40 s from now, of 8 runs", p)
	}
	if p := h.record(first).Prediction; p == nil || p.Base != 0 {
		t.Errorf("got prediction %+v of a run that got a slot at once, want one without a queue", p)
	} else if late, _, ok := p.Error(); !ok || late.Abs() > 5*time.Second {
		t.Errorf("got an error of %s, %t of a start at once, want a small one", late, ok)
	}
	h.advance(40 * time.Second)
	h.ok(h.report(h.runner.last(), success()))
	h.step()
	h.wantState(second, run.Running)
	p = h.record(second).Prediction
	if late, covered, ok := p.Error(); !ok || !covered || late.Abs() > 15*time.Second || p.Waited() < 40*time.Second {
		t.Errorf("got an error of %s after %s, covered %t, %t; want a small one after 40 s", late, p.Waited(), covered, ok)
	}
}
