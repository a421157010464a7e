package sqlite_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

func TestJobIsInspected(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sortie.db")
	store, _, _ := setupStore(t, path)
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	j := job.Job{Tenant: "acme", ID: "nightly", Version: 1, CreatedAt: now, Definition: job.Definition{Name: "first"}}
	if err := store.SaveJob(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	j.Revision, j.Version, j.Definition.Name = 1, 2, "second"
	if err := store.SaveJob(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	w := port.WriteOf(run.New(run.Run{Tenant: "acme", ID: "nightly:1", TaskID: "task", JobID: "nightly"}, now))
	if _, err := store.Create(t.Context(), w, nil); err != nil {
		t.Fatal(err)
	}
	w.Run.Version = 1
	d, err := run.Decide(w.Run, run.CancelRequested{}, now)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Commit(t.Context(), port.WriteOf(d)); err != nil {
		t.Fatal(err)
	}
	text, err := sqlite.Inspect(t.Context(), path, "nightly")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	var found struct {
		Record     job.Job
		Versions   []job.Job
		LastResult []run.Result
	}
	if err := json.Unmarshal(doc, &found); err != nil {
		t.Fatal(err)
	}
	if found.Record.Definition.Name != "second" || len(found.Versions) != 1 || found.Versions[0].Definition.Name != "first" ||
		len(found.LastResult) != 1 || found.LastResult[0].RunID != "nightly:1" {
		t.Errorf("got %s", doc)
	}
	if byRun, err := sqlite.Inspect(t.Context(), path, "nightly:1"); err != nil || byRun["events"] == nil {
		t.Errorf("run: got %v, %v", byRun, err)
	}
	older, _ := older(t, "folder-3")
	for _, file := range []string{path, older} {
		if _, err := sqlite.Inspect(t.Context(), file, "unknown"); !errors.Is(err, port.ErrNotFound) {
			t.Errorf("unknown id: got %v, want ErrNotFound", err)
		}
	}
}
