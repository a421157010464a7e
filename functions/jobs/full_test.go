package jobs_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/functions/jobs"
	"github.com/sortie-dev/sortie/functions/tasks"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/adapter/keyfile"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/adapter/timer"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// TestFullDiskDelaysAFiring fills the disk before a firing, and frees it after two tries.
func TestFullDiskDelaysAFiring(t *testing.T) {
	t.Parallel()
	folder, now := t.TempDir(), clock.NewVirtual(apitest.Began)
	db, err := sqlite.Open(t.Context(), filepath.Join(folder, "sortie.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	store, err := sqlite.NewStore(t.Context(), db, now)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := keyfile.Open(filepath.Join(folder, "keys.pem"))
	if err != nil {
		t.Fatal(err)
	}
	stage := apitest.New(t, apitest.Parts{Store: store, Signer: signer, Clock: now}, func(s *app.System) []httpkit.Route {
		return append(jobs.Routes(s.Jobs, s.Queries, s.Explanations), tasks.Routes(s.Queries, s.Runs, s.Logs, tasks.Keys{Tokens: signer, Events: fake.NewEventKeys(nil)}, "")...)
	})
	pages := func(most int) {
		t.Helper()
		err := db.Write(t.Context(), func(tx *sqlite.Tx) error {
			return tx.QueryRow(fmt.Sprintf("PRAGMA max_page_count = %d", most)).Scan(new(int))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	document := `{"image": "app", "schedule": "@every 1h", "command": ["` + strings.Repeat("x", 30_000) + `"]}`
	stored, _ := apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, document, 201)
	due := stored.NextAt
	ref, schedules, calls := job.Ref{Tenant: apitest.Tenant, ID: "nightly"}, timer.New(now), make(chan error)
	if err := schedules.Set(t.Context(), ref, due); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		schedules.Run(ctx, 1, func(ctx context.Context, ref job.Ref) error {
			err := stage.System.Fire(ctx, ref)
			calls <- err
			return err
		})
	}()
	defer func() { cancel(); <-ended }()
	pages(1) // no more than it has
	now.Advance(due.Sub(now.Now()))
	if err := <-calls; !fault.Is(err, fault.StoreFull) {
		t.Fatalf("first try: got %v, want STORE_FULL", err)
	}
	now.Advance(100 * time.Millisecond)
	if err := <-calls; !fault.Is(err, fault.StoreFull) {
		t.Fatalf("second try: got %v, want STORE_FULL", err)
	}
	pages(1 << 20)
	now.Advance(200 * time.Millisecond)
	if err := <-calls; err != nil {
		t.Fatalf("third try: got %v, want a firing", err)
	}
	list, _ := apitest.Decoded[contract.TaskList](t, stage, "GET", "/v1/tasks?jobId=nightly", "", 200)
	if len(list.Tasks) != 1 || !list.Tasks[0].ScheduledAt.Equal(due) {
		t.Errorf("got the runs %+v, want one of %s", list.Tasks, due)
	}
	shown, _ := apitest.Decoded[api.JobAnswer](t, stage, "GET", path, "", 200)
	if !shown.NextAt.Equal(due.Add(time.Hour)) {
		t.Errorf("got the next firing %v, want an hour after %s", shown.NextAt, due)
	}
}
