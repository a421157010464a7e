package suite

import (
	"bytes"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// TestNightlyReportIsShort reads the job file of the scenario as it is.
func TestNightlyReportIsShort(t *testing.T) {
	t.Parallel()
	if lines := bytes.Count(nightlyReport, []byte("\n")); lines > 25 {
		t.Errorf("got %d lines, want at most 25", lines)
	}
	d, problems := job.Parse(nightlyReport, &job.Deployment{HasPool: func(string) bool { return true }, Policy: spec.Policy{
		StartTimeout: time.Minute, TimeLimit: time.Hour, HeartbeatInterval: 30 * time.Second, HeartbeatTimeout: 90 * time.Second, CancelGrace: 30 * time.Second,
		QueueTimeout: time.Hour, OutputRetention: time.Hour, RecordRetention: time.Hour,
		Retry: spec.Retry{MaxAttempts: 3, MaxFurtherStarts: 3, InitialDelay: time.Second, Multiplier: 2, MaxDelay: time.Minute},
	}})
	if len(problems) > 0 {
		t.Errorf("got %v, want no problems", problems)
	}
	p := d.Run(spec.Policy{}).Policy
	if p.Retry.MaxAttempts != 4 || p.Deadline != 4*time.Hour || p.OutputRetention != 2160*time.Hour || p.RecordRetention != 2160*time.Hour {
		t.Errorf("got policy %+v, want 4 attempts in 4h, kept for 90 days", p)
	}
}
