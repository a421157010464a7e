package simulation

import (
	"context"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/jobs"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// drawAdmitting replaces the settings that would keep runs apart or end them early.
func (w *world) drawAdmitting() {
	w.Longest = min(w.Longest, 20*time.Minute)
	w.Config.MaxMachines, w.Config.Policy.QueueTimeout = 20, w.Longest
	w.Config.Policy.StartTimeout, w.Config.Policy.TimeLimit = time.Minute, 2*time.Minute
	w.Config.Policy.HeartbeatTimeout, w.Config.Policy.HeartbeatInterval = 30*time.Second, 10*time.Second
	w.Config.Policy.CancelGrace = w.Between(2*time.Second, 20*time.Second)
	w.Config.Policy.Retry.MaxAttempts, w.Config.Policy.Retry.InitialDelay = 1+w.Random.IntN(2), time.Second
	w.Config.Policy.Retry.MaxDelay = 5 * time.Second
	w.Plan.IgnoreSignals, w.Plan.Cancels = 0.3, 0.15
	w.Plan.WorkerContract = 0.3
}

// drawAdmission draws the definition of a job that is requested repeatedly.
func (w *world) drawAdmission(d map[string]any) {
	constraints := map[string]any{"maxConcurrentRuns": 1 + w.Random.IntN(3), "maxAllowedRunTime": "1m"}
	if w.Chance(0.4) {
		constraints["requirePreviousSuccess"] = true
	}
	if w.Chance(0.4) {
		constraints["preRunHook"] = map[string]any{"url": []string{harness.HookFreezes, harness.HookFreezes, harness.HookVaries}[w.Random.IntN(3)]}
	}
	if w.Chance(0.2) {
		constraints["catchUpWindow"] = w.Between(max(10*time.Second, w.Precision()), max(time.Minute, 2*w.Precision())).String()
	}
	d["completion"], d["constraints"] = spec.CompletionExit, constraints
	draw := func() map[string]any {
		kind := []spec.ActionType{
			spec.ActionWait, spec.ActionWait, spec.ActionWait, spec.ActionKillOld, spec.ActionKillOld, spec.ActionRetryLater, spec.ActionSkip, spec.ActionWebhook,
		}[w.Random.IntN(8)]
		parameters := map[string]any{}
		switch kind {
		case spec.ActionWait:
			parameters["limit"] = w.Between(20*time.Second, 5*time.Minute).String()
		case spec.ActionRetryLater:
			parameters["delay"], parameters["limit"] = w.Between(time.Second, 8*time.Second).String(), w.Between(20*time.Second, 3*time.Minute).String()
			if w.Chance(0.4) {
				parameters["maxRetries"] = 1 + w.Random.IntN(10)
			}
		case spec.ActionWebhook:
			parameters["url"] = harness.HookAllows
		}
		return map[string]any{"type": kind, "parameters": parameters}
	}
	actions := map[string]any{"onConstraintViolation": draw()}
	if _, hooked := constraints["preRunHook"]; hooked && w.Chance(0.3) {
		actions["onViolationOf"] = map[spec.Constraint]any{spec.PreRunHook: draw()}
	}
	d["actions"] = actions
}

// ownAdmitting runs a job, changes its limit and clears its results until the time.
func (w *world) ownAdmitting(id string, until time.Time) {
	for w.Time.Now.Before(until) {
		w.Time.Sleep(w.UpTo(w.horizon / 12))
		switch draw := w.Random.IntN(12); {
		case draw < 5:
			for range 1 + w.Random.IntN(4) { // overlapping requests
				w.runNow(id)
				if w.Chance(0.5) {
					w.Time.Sleep(w.UpTo(3 * time.Second))
				}
			}
		case draw < 6:
			w.runJob(id)
		case draw < 9:
			w.limitJob(id)
		case draw < 10:
			w.clearJob(id)
		case draw < 11:
			w.putJob(id)
		}
	}
}

// runNow requests a run of a job.
func (w *world) runNow(id string) {
	in := jobs.RunRequest{Identity: harness.Client, JobID: id, CorrelationID: "overlapping " + id}
	var accepted run.Run
	err := w.ClientCall(func(ctx context.Context) (err error) {
		accepted, _, err = w.System.Jobs.RunJob(ctx, in)
		return err
	})
	if err != nil {
		w.Note("run of %s: %v", id, err)
		return
	}
	w.accepted(in.CorrelationID, accepted)
}

// limitJob changes the limit of a job. Sometimes it removes the limit and the actions that need
// one.
func (w *world) limitJob(id string) {
	patch := fmt.Sprintf(`{"constraints":{"maxConcurrentRuns":%d}}`, 1+w.Random.IntN(4))
	if m := w.jobs[id]; m != nil && m.record != nil && w.Chance(0.25) {
		patch = `{"constraints":{"maxConcurrentRuns":null},"actions":{"onConstraintViolation":{"type":"skip","parameters":null},"onViolationOf":null}}`
	}
	w.Persist("limit of "+id+": "+patch, func(ctx context.Context) error {
		_, err := w.System.Jobs.Patch(ctx, harness.Client, id, []byte(patch), change.Precondition{})
		return err
	})
}

// clearJob clears the recorded results of a job.
func (w *world) clearJob(id string) {
	w.Persist("clear of "+id, func(ctx context.Context) error {
		if m := w.jobs[id]; m != nil {
			m.clearedAt = w.Time.Now.Add(2*w.Plan.Skew + w.limitSlack())
		}
		_, err := w.System.Jobs.Clear(ctx, harness.Client, id, change.Precondition{})
		return err
	})
}
