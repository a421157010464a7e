package api_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/api"
)

func TestUpdateIDIsAVersion5UUID(t *testing.T) {
	t.Parallel()
	got := api.UpdateID("nightly:20260102T020000Z", 7)
	id, err := uuid.Parse(got)
	if err != nil || id.Version() != 5 || id.Variant() != uuid.RFC4122 {
		t.Errorf("got %s (%v), want a version 5 UUID", got, err)
	}
	space := uuid.MustParse("6f1c8f0e-3a51-4d0c-9d2e-5b8a2f6f7f10")
	if want := uuid.NewSHA1(space, []byte("nightly:20260102T020000Z/7")).String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if other := api.UpdateID("nightly:20260102T020000Z", 8); other == got {
		t.Errorf("got %s for two events, want two ids", got)
	}
}

// TestUpdatesFollowTheTransitions lists the updates of a run whose second attempt succeeds.
// Events without a transition and without a fault are not updates.
func TestUpdatesFollowTheTransitions(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	tick := func(n int) time.Time { return at.Add(time.Duration(n) * time.Second) }
	why := fault.New(fault.ProgramExit, "the program exited with code 3")
	events := []run.Event{
		{Seq: 1, At: tick(1), State: run.Pending},
		{Seq: 2, At: tick(2), From: run.Pending, State: run.ContainerCreating, Attempt: 1},
		{Seq: 3, At: tick(3), From: run.ContainerCreating, State: run.ContainerCreating, Attempt: 1},
		{Seq: 4, At: tick(4), From: run.ContainerCreating, State: run.Running, Attempt: 1},
		{Seq: 5, At: tick(5), From: run.Running, State: run.Terminating, Attempt: 1, Fault: why, Exit: &run.Exit{Code: 3}},
		{Seq: 6, At: tick(6), From: run.Terminating, State: run.Retrying, Attempt: 1, Fault: why},
		{Seq: 7, At: tick(7), From: run.Retrying, State: run.Pending, Attempt: 1},
		{Seq: 8, At: tick(8), From: run.Pending, State: run.ContainerCreating, Attempt: 2},
		{Seq: 9, At: tick(9), From: run.ContainerCreating, State: run.Running, Attempt: 2},
		{Seq: 10, At: tick(10), From: run.Running, State: run.Terminating, Attempt: 2, Exit: &run.Exit{Code: 0}},
		{Seq: 11, At: tick(11), From: run.Terminating, State: run.Completed, Attempt: 2},
	}
	r := run.Run{ID: "nightly:20260102T020000Z", TaskID: "job_1", JobID: "nightly", State: run.Completed, Logs: []int{1, 2}}
	updates := api.Updates(r, events)
	if len(updates) != len(events)-1 {
		t.Fatalf("got %d updates of %d events, want one less", len(updates), len(events))
	}
	failed, due, again, last := updates[4], updates[5], updates[6], updates[9]
	if due.Status != "Pending" || due.RetryAttempt != 1 || due.ExitCode != nil {
		t.Errorf("got %+v after the delay, want retry 1", due)
	}
	if failed.Status != "Retrying" || failed.Error != why.Message || failed.ExitCode == nil || *failed.ExitCode != 3 || failed.RetryAttempt != 1 ||
		failed.Logs != "/v1/tasks/job_1/logs?attempt=1" || !failed.StartedAt.Equal(tick(4)) {
		t.Errorf("got %+v after the first attempt, want retry 1 with its exit code, log and start", failed)
	}
	if again.RetryAttempt != 1 || again.ExitCode != nil || again.Logs != "" || !again.StartedAt.IsZero() || again.Error != "" {
		t.Errorf("got %+v at the second attempt, want nothing of the first", again)
	}
	if last.Status != "Completed" || !last.Success || *last.ExitCode != 0 || !last.CompletedAt.Equal(tick(11)) || !last.StartedAt.Equal(tick(9)) || last.JobID != "nightly" {
		t.Errorf("got %+v at the end, want a success of the second attempt", last)
	}
	r.Skipped = true
	if skipped := api.Updates(r, events); skipped[len(skipped)-1].Success {
		t.Error("got a success of a skipped run, want none")
	}
}
