// Package about has the attributes of log lines about runs, their machines and their workers.
package about

import (
	"log/slog"
	"time"

	"github.com/sortie-dev/sortie/shared/app/token"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Attributes returns the attributes of every log line about a run, without the correlation id:
// the logger of a request has its own. job_id is absent without a stored job, scheduled_at
// without a scheduled time. An inference task adds its engine and, if known, the versions of
// the engine and of the sampling parameters.
func Attributes(r *run.Run) []slog.Attr {
	about := token.About{JobID: r.JobID, ScheduledAt: r.ScheduledAt}
	attrs := append(attributes(r.ID, r.TaskID, r.Attempt.Number, about), slog.String("state", string(r.State)))
	work := r.Work.Inference
	if work == nil {
		return attrs
	}
	attrs = append(attrs, slog.String("engine", work.Engine))
	if g := r.Generation; g != nil && g.EngineVersion != "" {
		attrs = append(attrs, slog.String("engine_version", g.EngineVersion))
	}
	if work.SamplerProfile != "" {
		attrs = append(attrs, slog.String("sampler_profile_version", work.SamplerProfile))
	}
	return attrs
}

// WorkerAttributes returns the attributes of a log line about a worker's call, from its token.
// They have no state, because the record of the run may not have been read.
func WorkerAttributes(b token.Bearer) []slog.Attr {
	return attributes(b.RunID, b.TaskID, b.Attempt, b.About())
}

// Run returns Attributes with the correlation id of the run.
func Run(r *run.Run) []slog.Attr {
	return append(Attributes(r), slog.String("correlation_id", r.CorrelationID))
}

// Worker returns WorkerAttributes with the correlation id of the run.
func Worker(b token.Bearer) []slog.Attr {
	return append(WorkerAttributes(b), slog.String("correlation_id", b.About().CorrelationID))
}

// Machine returns the attributes of a log line about a machine whose run may be
// unknown.
func Machine(m port.MachineStatus, r run.Run) []slog.Attr {
	attrs := attributes(m.Owner.RunID, r.TaskID, m.Owner.Attempt, token.About{})
	if r.ID != "" {
		attrs = Run(&r)
	}
	return append(attrs, slog.String("machine_id", m.ID), slog.Int("machine_attempt", m.Owner.Attempt))
}

func attributes(runID, taskID string, attempt int, about token.About) []slog.Attr {
	attrs := []slog.Attr{slog.String("run_id", runID), slog.String("task_id", taskID), slog.Int("attempt", attempt)}
	if about.JobID != "" {
		attrs = append(attrs, slog.String("job_id", about.JobID))
	}
	if !about.ScheduledAt.IsZero() {
		attrs = append(attrs, slog.String("scheduled_at", about.ScheduledAt.UTC().Format(time.RFC3339)))
	}
	return attrs
}
