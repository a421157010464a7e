package stack_test

import (
	"context"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/sortie-dev/sortie/local/proof/stacktest"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// TestLockedStoreDelaysFirings locks the file of the records, as another program might, until a
// firing has failed. Sweeps would also fire the job, so they are an hour apart.
func TestLockedStoreDelaysFirings(t *testing.T) {
	t.Parallel()
	data, log := t.TempDir(), &stacktest.Log{}
	config, err := served{Data: data, Sweep: time.Hour}.Stack(slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	s, err := stack.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		show(t, log)
	})
	c := &child{target: &target{Client: client(t, s.Addresses())}}
	if answer := c.Call(http.MethodPut, everySecond, `{"image": "sortie-worker", "schedule": "@every 1s"}`); answer.Status != http.StatusCreated {
		t.Fatalf("got %d %s, want 201", answer.Status, answer.Body)
	}
	before := len(c.firings(1))
	conn, err := sqlite.OpenConn(filepath.Join(data, stack.RecordsFile), sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := sqlitex.ExecuteTransient(conn, "BEGIN IMMEDIATE", nil); err != nil {
		t.Fatal(err)
	}
	for !strings.Contains(log.String(), "cannot fire a job") {
		if err := clock.Sleep(t.Context(), clock.System{}, 50*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	if err := sqlitex.ExecuteTransient(conn, "ROLLBACK", nil); err != nil {
		t.Fatal(err)
	}
	c.firings(before + 3)
}
