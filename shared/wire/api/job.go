package api

import (
	"encoding/json"

	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// JobAnswer is the response of GET /v1/jobs/{job_id}: the fields of the definition and those of
// the record.
type JobAnswer struct {
	job.Definition
	contract.JobState
}

// Job returns the response for a job.
func Job(j job.Job) JobAnswer { return JobAnswer{j.Definition, jobState(j)} }

// Documents returns the functions that encode the subjects of events without a run.
func Documents() runs.Documents {
	return runs.Documents{Job: JobDocument, Pool: PoolDocument, Model: ModelDocument, Budget: BudgetDocument, Log: LogEvent}
}

// JobDocument encodes a job for the digests in its events.
func JobDocument(j job.Job) ([]byte, error) { return json.Marshal(Job(j)) }

// PoolDocument encodes a pool, without its use, for the digests in its events.
func PoolDocument(p platform.Pool) ([]byte, error) {
	return json.Marshal(Pool(pools.View{Pool: p}))
}

// RunAccepted returns the response to an accepted run.
func RunAccepted(r run.Run) contract.RunAccepted {
	return contract.RunAccepted{TaskID: r.TaskID, RunID: r.ID, State: string(r.State)}
}

// JobVersionAnswer is the response of GET /v1/jobs/{job_id}/versions/{version}.
type JobVersionAnswer struct {
	job.Definition
	contract.JobVersion
}

// JobVersion returns the response for a job with a version of its definition.
func JobVersion(j job.Job) JobVersionAnswer {
	return JobVersionAnswer{j.Definition, contract.JobVersion{Version: j.Version, UpdatedAt: j.UpdatedAt, UpdatedBy: j.UpdatedBy}}
}

// SummaryOf returns the summary of a response, without results.
func SummaryOf(j JobAnswer) contract.JobSummary {
	d := j.Definition
	summary := contract.JobSummary{
		ID: d.ID, Name: d.Name, Labels: d.Labels, Pool: d.Pool, Image: d.Image, Schedule: d.Schedule, Schedules: d.Schedules, TimeZone: d.TimeZone,
		Sensor: d.Sensor != nil, JobState: j.JobState,
	}
	for _, a := range d.After {
		summary.After = append(summary.After, a.Job)
	}
	if d.Export != nil {
		summary.Export = d.Export.Format
	}
	return summary
}

// JobSummary returns an item of GET /v1/jobs.
func JobSummary(j job.Job, newest []run.Run) contract.JobSummary {
	summary := SummaryOf(Job(j))
	for _, r := range newest {
		summary.Results = append(summary.Results, contract.JobResult{
			RunID: r.ID, State: string(r.State), Skipped: r.Skipped, CreatedAt: r.CreatedAt, StartedAt: startedAt(r), EndedAt: r.EndedAt,
		})
	}
	return summary
}

func jobState(j job.Job) contract.JobState {
	state := contract.JobState{
		JobVersion: contract.JobVersion{Version: j.Version, UpdatedAt: j.UpdatedAt, UpdatedBy: j.UpdatedBy}, CreatedAt: j.CreatedAt,
		Paused: j.Paused, PausedAt: j.PausedAt,
	}
	if !j.Paused {
		state.NextAt = j.NextAt
	}
	return state
}
