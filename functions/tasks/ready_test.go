package tasks_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/functions/tasks"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/adapter/keyfile"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// wantReady calls /readyz. code is the expected code of the problem; empty means that 200 is
// expected.
func wantReady(t *testing.T, stage *apitest.Stage, code fault.Code) {
	t.Helper()
	if code == "" {
		if is := get[contract.Health](t, stage, "/readyz"); is.Status != "ok" || is.Version != "v1" {
			t.Errorf("got %+v, want ok and v1", is)
		}
		return
	}
	p, header := apitest.Decoded[contract.Problem](t, stage, http.MethodGet, "/readyz", "", http.StatusServiceUnavailable)
	if p.Code != string(code) || header.Get("Retry-After") == "" {
		t.Errorf("got %+v, want %s and Retry-After", p, code)
	}
}

func TestFullStoreIsNotReady(t *testing.T) {
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
	stage := apitest.New(t, apitest.Parts{Store: store, Signer: signer, Clock: now}, func(*app.System) []httpkit.Route {
		return tasks.ReadyRoutes(tasks.NewReadiness(store.Probe, now), "v1")
	})
	limit := func(pages int) {
		t.Helper()
		err := db.Write(t.Context(), func(tx *sqlite.Tx) error {
			_, err := tx.Exec(fmt.Sprintf("PRAGMA max_page_count = %d", pages))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	limit(1)
	wantReady(t, stage, fault.StoreFull)
	limit(1 << 20)
	wantReady(t, stage, fault.StoreFull) // the result is two seconds old at most
	now.Advance(2 * time.Second)
	wantReady(t, stage, "")
	if answer := stage.Call(t, http.MethodHead, "/readyz", ""); answer.Status != http.StatusOK {
		t.Errorf("HEAD: got %d, want 200", answer.Status)
	}
}

func TestProbesShareAWrite(t *testing.T) {
	t.Parallel()
	parts := apitest.NewParts(t)
	now, writes, failure := parts.Clock.(*clock.Virtual), 0, error(nil)
	ready := tasks.NewReadiness(func(context.Context) error { writes++; return failure }, now)
	stage := apitest.New(t, parts, func(*app.System) []httpkit.Route { return tasks.ReadyRoutes(ready, "v1") })
	for range 100 {
		wantReady(t, stage, "")
	}
	failure = errors.New("access denied")
	now.Advance(2 * time.Second)
	for range 100 {
		wantReady(t, stage, fault.Unavailable)
	}
	if writes != 2 {
		t.Errorf("got %d writes, want 2", writes)
	}
}

func TestStoreWithAReceptionIsReady(t *testing.T) {
	t.Parallel()
	parts := apitest.NewParts(t)
	ready := tasks.NewReadiness(tasks.RewriteReception(parts.Store), parts.Clock)
	stage := apitest.New(t, parts, func(*app.System) []httpkit.Route { return tasks.ReadyRoutes(ready, "v1") })
	wantReady(t, stage, "")
}
