package dynamo

import (
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// TestTaskIDOutlivesItsRun checks the expiry of a task id's item. It is after every wait that
// the run's policy and actions allow, and its retention.
func TestTaskIDOutlivesItsRun(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	created := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	plain := run.Run{CreatedAt: created, Policy: spec.Policy{TimeLimit: time.Hour, RecordRetention: 7 * day}}
	scheduled, waits, waitsForOne := plain, plain, plain
	scheduled.ScheduledAt = created.Add(30 * day)
	waits.Actions = &spec.Actions{OnViolation: &spec.Action{Type: spec.ActionWait, Limit: 60 * day}}
	waitsForOne.Actions = &spec.Actions{Each: map[spec.Constraint]spec.Action{spec.MaxConcurrentRuns: {Type: spec.ActionWait, Limit: 90 * day}}}
	for name, row := range map[string]struct {
		run  run.Run
		life time.Duration
	}{
		"plain":                    {plain, 7*day + time.Hour},
		"scheduled":                {scheduled, 37*day + time.Hour},
		"waits":                    {waits, 67*day + time.Hour},
		"waits for one constraint": {waitsForOne, 97*day + time.Hour},
	} {
		if got, want := time.Unix(nameExpiry(row.run), 0), created.Add(row.life); got.Before(want) {
			t.Errorf("%s: got an expiry at %s, want %s or later", name, got, want)
		}
	}
}
