package api

import (
	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/job"
)

// JobAnswer is the response of GET /v1/jobs/{job_id}: the members of the definition and
// those of the record.
type JobAnswer struct {
	job.Definition
	contract.JobState
}

// Job returns the response for a job.
func Job(j job.Job) JobAnswer { return JobAnswer{j.Definition, jobState(j)} }

// JobVersionAnswer is the response of GET /v1/jobs/{job_id}/versions/{version}.
type JobVersionAnswer struct {
	job.Definition
	contract.JobVersion
}

// JobVersion returns the response for a job as of a version of its definition.
func JobVersion(j job.Job) JobVersionAnswer {
	return JobVersionAnswer{j.Definition, contract.JobVersion{Version: j.Version, UpdatedAt: j.UpdatedAt, UpdatedBy: j.UpdatedBy}}
}

// JobSummary returns an item of GET /v1/jobs.
func JobSummary(j job.Job) contract.JobSummary {
	d := j.Definition
	return contract.JobSummary{
		ID: j.ID, Name: d.Name, Pool: d.Pool, Image: d.Image, Schedule: d.Schedule, TimeZone: d.TimeZone, JobState: jobState(j),
	}
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
