package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/base/livelog"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// Published returns the functions with which a relay makes events from changes. publicURL is
// the address of the API, which is the base of artifact addresses.
func Published(publicURL string) delivery.Published {
	return delivery.Published{
		Events:     func(c port.Change) ([]events.Envelope, error) { return Events(publicURL, c) },
		Unreadable: Unreadable,
	}
}

// Events returns the published events of a change, in order, each at most 64 KiB. They have no
// notifier. An event that is derived from an event of a run has its own id, which depends only
// on the original and the type. publicURL is as in Published.
func Events(publicURL string, c port.Change) ([]events.Envelope, error) {
	var all []events.Envelope
	for _, e := range c.Events {
		all = append(all, runEvents(publicURL, c.Run, e)...)
	}
	for _, n := range c.Notes {
		e, err := events.Parse(n.Document)
		if err != nil {
			return nil, fmt.Errorf("note %s: %w", n.ID, err)
		}
		all = append(all, e)
	}
	for i, e := range all {
		var err error
		if all[i], err = e.Fit(); err != nil {
			return nil, fmt.Errorf("event %s: %w", e.EventID, err)
		}
	}
	return all, nil
}

// LogEvent returns the event of a chunk of a program's output.
func LogEvent(r run.Run, chunk livelog.Frame, at time.Time) events.Envelope {
	a := r.Attempt
	e := run.Event{At: at, State: r.State, Attempt: a.Number, Actor: run.Actor{Subject: "worker:" + cmp.Or(a.WorkerID, a.MachineName)}}
	id := run.EventID(at, fmt.Sprintf("%q %q output %d %d", r.Tenant, r.ID, a.Number, chunk.Sequence))
	own := header(r, e, eventtype.PackRunLog, id)
	own.IdempotencyKey = events.RunKey(eventtype.PackRunLog, r.TaskID, a.Number, chunk.Sequence)
	own.Job = eventJob(r, e)
	if chunk.Lag > 0 {
		own.Metrics = map[string]any{"logStreamLagSeconds": seconds(chunk.Lag)}
	}
	own.Log = &events.Log{Stream: string(chunk.Stream), Sequence: int64(chunk.Sequence), Data: chunk.Data}
	return own
}

// Unreadable returns the event that replaces the events of an unreadable change.
func Unreadable(tenant, changeID string, at time.Time) events.Envelope {
	return events.Envelope{
		SchemaVersion: events.SchemaVersion, EventID: events.ID(run.EventID(at, fmt.Sprintf("unreadable %q %q", tenant, changeID))),
		EventType: eventtype.RelayUnreadable, OccurredAt: at.UTC(), TenantID: tenant,
		IdempotencyKey: events.ResourceKey(eventtype.RelayUnreadable, changeID, 0), Actor: events.ActorOf("service:relay", nil),
	}
}

// runEvents returns the published form of an event of a run, and the events that are derived
// from it.
func runEvents(publicURL string, r run.Run, e run.Event) []events.Envelope {
	t := eventtype.Type(e.Type)
	own := header(r, e, t, e.ID)
	own.IdempotencyKey, own.Metrics = events.RunKey(t, r.TaskID, e.Attempt, e.Seq), eventMetrics(r, e)
	own.Job = eventJob(r, e)
	own.Job.Artifacts = eventArtifacts(publicURL, r, e)
	all := []events.Envelope{own}
	if t, ok := firingType(r, e); ok {
		fired := header(r, e, t, derivedID(e, t))
		fired.IdempotencyKey, fired.Schedule = fmt.Sprintf("orch-%s-%s", t, r.ID), eventSchedule(r)
		all = append(all, fired)
	}
	if t, ok := outputType(r, e); ok {
		output := header(r, e, t, derivedID(e, t))
		output.IdempotencyKey, output.Metrics = events.RunKey(t, r.TaskID, e.Attempt, e.Seq), own.Metrics
		job := *own.Job
		job.Seq, job.Message = 0, "" // these belong to the original event
		output.Job = &job
		all = append(all, output)
	}
	return all
}

// derivedID returns the id of an event of type t that is derived from e.
func derivedID(e run.Event, t eventtype.Type) string {
	return run.EventID(e.At, fmt.Sprintf("%s of %s", t, e.ID))
}

// header returns an event of a run with its common fields, without its subject.
func header(r run.Run, e run.Event, t eventtype.Type, id string) events.Envelope {
	return events.Envelope{
		SchemaVersion: events.SchemaVersion, EventID: events.ID(id), EventType: t, OccurredAt: e.At.UTC(),
		CorrelationID: r.CorrelationID, TenantID: r.Tenant, ProjectID: r.Workspace,
		Actor: events.ActorOf(e.Actor.Name(), e.Actor.Scopes),
	}
}

// firingType returns the type of the schedule event that is derived from the first event of a
// run; ok is false without one.
func firingType(r run.Run, e run.Event) (eventtype.Type, bool) {
	switch {
	case e.Seq != 1 || r.FiredAt.IsZero():
		return "", false
	case r.Missed != nil:
		return eventtype.ScheduleSkipped, true
	}
	return eventtype.ScheduleFired, true
}

// outputType returns the type of the output event that is derived from the success of a run; ok
// is false without one.
func outputType(r run.Run, e run.Event) (eventtype.Type, bool) {
	switch {
	case e.Type != run.EventCompleted || r.Output == nil:
		return "", false
	case r.Work.Kind == spec.KindExport:
		return eventtype.ExportCompleted, true
	}
	return eventtype.PackRunArtifact, true
}

func eventSchedule(r run.Run) *events.Schedule {
	s := &events.Schedule{DefinitionID: r.JobID, ScheduledAt: r.ScheduledAt.UTC(), FiredAt: r.FiredAt.UTC(), RunID: r.ID}
	if m := r.Missed; m != nil {
		s.Skipped, s.Reason = m.Count, m.String()
	}
	return s
}

func eventJob(r run.Run, e run.Event) *events.Job {
	job := &events.Job{
		ID: r.TaskID, Type: jobType(r.Work.Kind), RunID: r.ID, Status: jobStatus(e.State), DefinitionID: r.JobID, DefinitionVersion: r.JobVersion, BatchID: r.BatchID, Labels: r.Labels,
		Attempt: e.Attempt, State: string(e.State), From: string(e.From), Reason: jobReason(e), Skipped: e.Type == run.EventSkipped || r.Skipped && e.State.Terminal(), Seq: e.Seq,
		PayloadDigest: r.PayloadDigest, Message: e.Message,
	}
	if a := r.Attempt; a.Number == e.Attempt && a.Number > 0 {
		job.LeaseID = leaseID(r)
		if runner := runnerID(a); runner != "" {
			job.TaskRunnerID = "tr_" + runner
		}
	}
	if r.Child != nil {
		job.ParentRunID = r.Child.Parent
	}
	if by := r.TriggeredBy(); by.RunID != "" {
		job.TriggeredBy = &events.JobRun{JobID: by.JobID, RunID: by.RunID}
	}
	if child := e.Triggered; child != nil {
		job.Triggered = &events.JobRun{JobID: child.JobID, RunID: child.RunID}
	}
	if f := e.Fault; f != nil {
		job.Fault = &events.Fault{Code: string(f.Code), Category: string(f.Category), Message: f.Message, Retryable: f.Retryable}
	}
	return job
}

// eventArtifacts returns the artifacts of an event: the output of a run, with its success.
func eventArtifacts(publicURL string, r run.Run, e run.Event) []events.Artifact {
	o := r.Output
	if o == nil || e.Type != run.EventCompleted {
		return nil
	}
	return []events.Artifact{{
		URI:    strings.TrimRight(publicURL, "/") + "/download/" + url.PathEscape(r.TaskID),
		Digest: o.Digest, MIME: r.Work.ContentType(), Size: max(o.Size, 0), FileName: o.FileName,
	}}
}

// leaseID returns the name of the slot of the current attempt.
func leaseID(r run.Run) string { return "lease_" + r.Slot.Pool + "/" + r.Attempt.MachineName }

// runnerID returns the machine id of an attempt, or its worker id while the machine is unknown.
func runnerID(a run.Attempt) string {
	if a.Machine.ID != "" {
		return a.Machine.ID
	}
	return a.WorkerID
}

func jobType(kind string) events.JobType {
	if kind == spec.KindJob {
		return events.JobPackRun
	}
	return events.JobType(kind)
}

func jobStatus(s run.State) events.Status {
	switch s {
	case run.Completed:
		return events.StatusCompleted
	case run.Failed, run.Orphaned:
		return events.StatusFailed
	case run.Cancelled:
		return events.StatusCanceled
	}
	return events.StatusRunning
}

// jobReason returns why the run waits or was cancelled; empty otherwise. A run that is queued
// in ContainerCreating waits for the platform, so it is not paused by a quota.
func jobReason(e run.Event) events.Reason {
	switch {
	case e.Type == run.EventCancelRequested, e.State == run.Cancelled, e.Fault != nil && e.Fault.Code == fault.Cancelled:
		return events.ReasonUserCancelled
	case e.State == run.Retrying:
		return events.ReasonRetryBackoff
	case e.Type == run.EventQueued && e.State != run.ContainerCreating:
		return events.ReasonQuotaPaused
	}
	return ""
}

// eventMetrics returns the numbers of an event: the duration of an attempt that has ended, the
// time until the next attempt, and the metrics of a run that has ended. It returns nil without
// numbers.
func eventMetrics(r run.Run, e run.Event) map[string]any {
	metrics := map[string]any{}
	if m, ended := r.EndMetrics(e); ended {
		document, err := json.Marshal(measured(r, m))
		if err != nil || json.Unmarshal(document, &metrics) != nil { // cannot fail: only numbers, strings and times
			metrics = map[string]any{}
		}
	}
	a := r.Attempt
	if a.Number == e.Attempt && !a.StartedAt.IsZero() && !a.EndedAt.IsZero() && (e.Ends() || e.Type == run.EventAttemptEnded) {
		metrics["durationSeconds"] = seconds(max(a.EndedAt.Sub(a.StartedAt), 0))
	}
	if e.Type == run.EventRetryScheduled {
		metrics["backoffSeconds"] = seconds(max(r.RetryAt.Sub(e.At), 0))
	}
	if len(metrics) == 0 {
		return nil
	}
	return metrics
}
