package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/jobs"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// maxJobs limits the jobs of a world.
const maxJobs = 3

// drawJobs draws the number of jobs and the time for which their schedules fire.
func (w *world) drawJobs() {
	if w.Graphed() {
		w.drawGraph()
		return
	}
	if w.FannedOut() {
		w.drawFanOut()
		return
	}
	if w.Dated() {
		w.drawDated()
		return
	}
	if w.Sensed() {
		w.drawSensors()
		return
	}
	if w.Chained() {
		w.Requests, w.horizon = 0, 2*time.Minute
		for i := range maxLineage + 2 {
			w.jobIDs = append(w.jobIDs, fmt.Sprintf("job-%d", i+1))
		}
		return
	}
	if !w.Contended() && !w.Admitting() && (w.Requests > 10 || w.Chance(0.4)) {
		return
	}
	if !w.SeveralPools() {
		w.Requests = w.Random.IntN(3)
	}
	if w.Admitting() {
		w.Requests, w.horizon = w.Random.IntN(2), w.Between(2*time.Minute, 4*time.Minute)
		w.jobIDs = []string{"job-1", "job-2"}
		return
	}
	if w.Contended() {
		w.Requests, w.horizon = 1+w.Random.IntN(6), w.Between(time.Minute, 4*time.Minute)
		for i := range maxJobs {
			w.jobIDs = append(w.jobIDs, fmt.Sprintf("job-%d", i+1))
		}
		return
	}
	w.horizon = w.Between(time.Minute, min(2*w.Longest, 2*time.Hour))
	for i := range 1 + w.Random.IntN(maxJobs) {
		w.jobIDs = append(w.jobIDs, fmt.Sprintf("job-%d", i+1))
	}
}

// startJobs schedules the owners of the jobs.
func (w *world) startJobs() {
	if w.graph != nil {
		w.Time.After(0, w.ownGraph)
		return
	}
	if w.fan != nil {
		w.Time.After(0, w.ownFanOut)
		return
	}
	if w.dates != nil {
		w.Time.After(0, w.ownDated)
		if w.PinsLate() {
			w.Time.After(0, w.pinLate)
		}
		return
	}
	own := w.ownJob
	if w.sensed != nil {
		w.SchedulePolls()
		own = w.ownSensor
	}
	for _, id := range w.jobIDs {
		w.Time.After(w.UpTo(30*time.Second), func() { own(id) })
	}
}

// ownJob simulates the owner of a job. The owner creates, changes, pauses and runs the job, and
// ends its schedule at the horizon.
func (w *world) ownJob(id string) {
	until := harness.Start.Add(w.horizon)
	w.putJob(id)
	if w.Chained() {
		if id == w.jobIDs[0] {
			for w.Time.Sleep(until.Sub(w.Time.Now)); len(w.Records.Ordered) == 0; w.Time.Sleep(w.UpTo(5 * time.Second)) {
				w.runJob(id)
			}
		}
		w.ownersDone++
		return
	}
	changes := w.Random.IntN(6)
	if w.Admitting() {
		w.ownAdmitting(id, until)
		changes = 0
	}
	if w.Contended() {
		w.ownContended(id, until)
		changes = 0
	}
	for range changes {
		pause := w.UpTo(w.horizon / 2)
		if !w.Time.Now.Add(pause).Before(until) {
			break
		}
		w.Time.Sleep(pause)
		switch w.Random.IntN(8) {
		case 0, 1:
			w.putJob(id)
		case 2, 3:
			w.Persist("pause "+id, func(ctx context.Context) error { return w.pauseJob(ctx, id, true) })
		case 4:
			w.Persist("resume "+id, func(ctx context.Context) error { return w.pauseJob(ctx, id, false) })
		case 5:
			w.deleteJob(id)
		default:
			w.runJob(id)
		}
	}
	w.Time.Sleep(until.Sub(w.Time.Now))
	if w.Chance(0.5) {
		w.Persist("resume "+id, func(ctx context.Context) error { return w.pauseJob(ctx, id, false) })
		w.Time.Sleep(w.UpTo(time.Minute))
	}
	if w.Chance(0.5) {
		w.deleteJob(id)
	} else {
		w.Persist("end of the schedule of "+id, func(ctx context.Context) error {
			_, err := w.System.Jobs.Patch(ctx, harness.Client, id, []byte(`{"schedule":null,"schedules":null,"calendars":null,"timeZone":null,"jitter":null,"missed":null,"startingDeadline":null,"constraints":{"catchUp":null}}`), change.Precondition{})
			return err
		})
	}
	w.ownersDone++
}

func (w *world) putJob(id string) {
	document, err := json.Marshal(w.drawDefinition(id))
	if err != nil {
		w.Broken = fmt.Errorf("definition: %w", err)
		return
	}
	w.Persist(fmt.Sprintf("definition of %s: %s", id, document), func(ctx context.Context) error {
		_, _, err := w.System.Jobs.Put(ctx, harness.Client, id, document, change.Precondition{})
		return err
	})
}

func (w *world) pauseJob(ctx context.Context, id string, pause bool) error {
	set := w.System.Jobs.Resume
	if pause {
		set = w.System.Jobs.Pause
	}
	j, err := set(ctx, harness.Client, id, change.Precondition{})
	if err == nil && j.Paused != pause {
		w.Fail("acknowledged change of %s: got paused %v, want %v", id, j.Paused, pause)
	}
	return err
}

func (w *world) deleteJob(id string) {
	w.Persist("deletion of "+id, func(ctx context.Context) error {
		return w.System.Jobs.Delete(ctx, harness.Client, id, change.Precondition{})
	})
}

// runJob requests a run of a job, for now or for a possible time of its schedule.
func (w *world) runJob(id string) {
	in := jobs.RunRequest{Identity: harness.Client, JobID: id, CorrelationID: "manual " + id}
	if w.Chance(0.7) {
		in.IdempotencyKey = fmt.Sprintf("manual %s at %s", id, w.Time.Now.Sub(harness.Start))
	}
	if w.Chance(0.5) {
		in.ScheduledAt = w.Time.Now.Add(time.Minute + w.UpTo(w.horizon/4)).Truncate(time.Second)
		if m := w.jobs[id]; m != nil && m.epoch != nil && w.Chance(0.7) {
			if at, ok := m.epoch.times.next(in.ScheduledAt, m.epoch.since); ok {
				in.ScheduledAt = at
			}
		}
	}
	var accepted run.Run
	err := w.ClientCall(func(ctx context.Context) (err error) {
		accepted, _, err = w.System.Jobs.RunJob(ctx, in)
		return err
	})
	if err != nil { // a request without a key is not repeated
		w.Note("run of %s: %v", id, err)
		return
	}
	w.accepted(in.CorrelationID, accepted)
}

// drawDefinition draws a definition and records the times of its schedule.
func (w *world) drawDefinition(id string) map[string]any {
	d := map[string]any{
		"id": id, "image": "worker", "command": []string{"work"},
		"completion": []spec.Completion{spec.CompletionExit, spec.CompletionExit, spec.CompletionCallback}[w.Random.IntN(3)],
	}
	if w.SeveralPools() && !w.Serves() {
		d["pool"] = w.Pools[w.Random.IntN(len(w.Pools))].Id
	}
	if w.Warmed() {
		w.DrawWarmJob(d)
	}
	constraints := map[string]any{}
	if w.Chained() {
		next := map[string]any{"type": spec.ActionTriggerJob, "parameters": map[string]any{"jobId": w.nextJob(id)}}
		d["actions"] = map[string]any{"onSuccess": next, "onFailure": next, "onSkip": next}
		return d
	}
	if w.graph != nil {
		w.drawNode(id, d)
		return d
	}
	if w.fan != nil {
		w.drawItems(d)
		return d
	}
	if w.dates != nil {
		w.drawDatedJob(d)
		return d
	}
	if w.sensed != nil {
		w.drawSensor(id, d)
		return d
	}
	if w.Admitting() {
		w.drawAdmission(d)
		return d
	}
	if w.Contended() {
		w.drawContended(d)
		return d
	}
	w.drawSchedule(d, constraints)
	w.drawConstraints(constraints)
	d["constraints"] = constraints
	if w.Chance(0.8) {
		d["actions"] = w.drawActions(id, constraints)
	}
	if w.Chance(0.5) {
		d["priority"] = []spec.Priority{spec.PriorityInteractive, spec.PriorityNormal, spec.PriorityBatch}[w.Random.IntN(3)]
	}
	if w.Chance(0.4) {
		w.drawKey(d)
	}
	if w.Chance(0.5) {
		d["retryConfig"] = map[string]any{"maxRetries": w.Random.IntN(3), "initialDelay": "5s"}
	}
	if w.Chance(0.3) {
		d["exitCodes"] = map[string]any{"retry": []int{75}, "fail": []int{2}}
		if d["completion"] == spec.CompletionCallback {
			delete(d, "exitCodes")
		}
	}
	return d
}

// nextJob returns the job that a job of a chain triggers. The last one triggers a job that does
// not exist.
func (w *world) nextJob(id string) string {
	i := slices.Index(w.jobIDs, id) + 1
	if i == len(w.jobIDs) {
		return "job-0"
	}
	return w.jobIDs[i]
}

// drawKey draws a concurrency key with its limits. Jobs may share the key.
func (w *world) drawKey(d map[string]any) {
	d["concurrencyKey"] = fmt.Sprintf("customer-%d", 1+w.Random.IntN(2))
	limits := map[string]any{"limit": 1 + w.Random.IntN(2)}
	if w.Chance(0.6) || w.Contended() {
		limits["queueLimit"] = 1 + w.Random.IntN(3)
		limits["overflow"] = []spec.Overflow{spec.OverflowReject, spec.OverflowKeepNewest, spec.OverflowKeepOldest}[w.Random.IntN(3)]
	}
	d["concurrency"] = limits
}

// drawSchedule draws a schedule: an interval, a cron expression, a single time or none.
func (w *world) drawSchedule(d, constraints map[string]any) {
	var times nominal
	zone := ""
	switch draw := w.Random.IntN(10); {
	case draw == 0:
		return
	case draw == 1:
		times.at = harness.Start.Add(w.UpTo(w.horizon)).Truncate(time.Second)
		d["schedule"] = "@at " + times.at.Format(time.RFC3339)
	case draw <= 4 && w.horizon >= 20*time.Minute:
		zone = []string{"", "Asia/Kathmandu", "America/St_Johns"}[w.Random.IntN(3)]
		times.offset = map[string]int{"Asia/Kathmandu": 345, "America/St_Johns": -210}[zone]
		if step := []int{5, 10, 15, 20}[w.Random.IntN(4)]; w.Chance(0.7) && w.horizon/time.Duration(step) <= 12*time.Minute {
			times.step = step
			d["schedule"] = fmt.Sprintf("*/%d * * * *", step)
			if step >= 15 { // the same times as a list, each of them an expression
				d["schedules"] = minutes(step)
				d["schedule"] = strings.Join(minutes(step), "; ")
			}
		} else {
			times.step, times.minute = 60, w.Random.IntN(60)
			d["schedule"] = fmt.Sprintf("%d * * * *", times.minute)
		}
		if zone != "" {
			d["timeZone"] = zone
		}
	default:
		times.every = w.Between(max(time.Second, (w.horizon/10).Truncate(time.Second)), max(2*time.Second, w.horizon/2))
		d["schedule"] = "@every " + times.every.String()
	}
	if w.Chance(0.3) {
		most := time.Hour
		if times.every > 0 {
			most = times.every - time.Second
		}
		if jitter := min(w.Between(time.Second, w.horizon/4+2*time.Second), most); jitter >= time.Second {
			d["jitter"] = jitter.String()
		}
	}
	w.drawMissed(d, constraints)
	w.schedules[scheduleKey{d["schedule"].(string), zone}] = times //nolint:forcetypeassert // set above
	if d["schedules"] != nil {
		delete(d, "schedule")
	}
	if times.step > 0 { // a date without a firing, long before
		d["calendars"] = []map[string]any{{"name": "past", "dates": []string{"2001-01-01"}, "firings": "next_day"}}
	}
}

// minutes returns an expression for each minute of an hour that a step selects, the last first.
func minutes(step int) (found []string) {
	for m := 60 - step; m >= 0; m -= step {
		found = append(found, fmt.Sprintf("%d * * * *", m))
	}
	return found
}

// scheduleKey is the text of a schedule with its time zone, as spelled in a definition.
type scheduleKey struct{ schedule, zone string }

func (w *world) drawConstraints(c map[string]any) {
	if w.Chance(0.6) {
		c["maxConcurrentRuns"] = 1 + w.Random.IntN(2)
	}
	if w.Chance(0.3) {
		c["requirePreviousSuccess"] = true
	}
	if w.Chance(0.3) {
		c["catchUpWindow"] = w.Between(max(10*time.Second, w.Precision()), max(w.horizon+time.Minute, 2*w.Precision())).String()
	}
	if w.Chance(0.2) {
		c["preRunHook"] = w.drawHook()
	}
	if w.Chance(0.2) {
		c["postRunHook"] = w.drawHook()
	}
	if w.Chance(0.5) {
		allowed := w.Between(30*time.Second, max(w.Longest/4, time.Minute))
		c["maxAllowedRunTime"] = allowed.String()
		if w.Chance(0.5) {
			c["maxExpectedRunTime"] = w.Between(time.Second, allowed/2).String()
		}
	}
}

func (w *world) drawHook() map[string]any {
	h := map[string]any{"url": []string{harness.HookAllows, harness.HookAllows, harness.HookRefuses, harness.HookFails, harness.HookHangs, harness.HookVaries, harness.HookFreezes}[w.Random.IntN(7)]}
	if w.Chance(0.3) {
		h["critical"] = true
	}
	if w.Chance(0.5) {
		h["onUnavailable"] = job.UnavailableAllow
	}
	return h
}
