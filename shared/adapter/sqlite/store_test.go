package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/storetest"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

var newYear = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) port.Store {
		store, _, _ := setupStore(t, filepath.Join(t.TempDir(), "sortie.db"))
		return store
	})
}

func setupStore(t testing.TB, path string) (*sqlite.Store, *sqlite.DB, *clock.Virtual) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	now := clock.NewVirtual(newYear)
	store, err := sqlite.NewStore(t.Context(), db, now)
	if err != nil {
		t.Fatal(err)
	}
	return store, db, now
}

func newRun(id string) port.Write {
	return port.WriteOf(run.New(run.Run{
		Tenant: "acme", ID: id, TaskID: id,
		Work:   spec.Work{Kind: "export", Options: []byte("{}")},
		Policy: spec.Policy{RecordRetention: time.Hour, StartTimeout: time.Minute},
	}, newYear))
}

// advance commits the facts one by one.
func advance(t testing.TB, store port.Store, id string, facts ...run.Fact) {
	t.Helper()
	for _, f := range facts {
		r, err := store.Load(t.Context(), run.Ref{Tenant: "acme", ID: id})
		if err != nil {
			t.Fatal(err)
		}
		d, err := run.Decide(r, f, newYear)
		if err != nil || !d.Changed {
			t.Fatalf("%T of run %s: got changed %v, %v", f, id, d.Changed, err)
		}
		if err := store.Commit(t.Context(), port.WriteOf(d)); err != nil {
			t.Fatal(err)
		}
	}
}

func create(t testing.TB, store port.Store, id string, facts ...run.Fact) {
	t.Helper()
	if _, err := store.Create(t.Context(), newRun(id), nil); err != nil {
		t.Fatal(err)
	}
	advance(t, store, id, facts...)
}

func TestStoreSurvivesReopening(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sortie.db")
	store, db, _ := setupStore(t, path)
	create(t, store, "holds", run.Admitted{Pool: "p", Limit: 1})
	create(t, store, "waits", run.Enqueued{Pool: "p", Limit: 1})
	key := &port.IdempotencyKey{Key: "k", Digest: "d"}
	if _, err := store.Create(t.Context(), newRun("keyed"), key); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Events(t.Context(), run.Ref{Tenant: "acme", ID: "holds"}, 0, 1); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("read of a closed store: got %v", err)
	}

	store, _, _ = setupStore(t, path)
	r, err := store.Load(t.Context(), run.Ref{Tenant: "acme", ID: "holds"})
	if err != nil || r.State != run.ContainerCreating || r.Version != 2 {
		t.Fatalf("after reopening: got run %+v, %v", r, err)
	}
	events, err := store.Events(t.Context(), r.Ref(), 0, 10)
	if err != nil || len(events) != 2 {
		t.Fatalf("after reopening: got events %+v, %v", events, err)
	}
	line, err := store.Queue(t.Context(), "acme", "p", 10)
	if err != nil || len(line) != 1 || line[0].ID != "waits" {
		t.Fatalf("after reopening: got queue %v, %v", line, err)
	}
	if existing, err := store.Create(t.Context(), newRun("again"), key); err != nil || existing == nil || existing.ID != "keyed" {
		t.Fatalf("after reopening: got run %+v by the key, %v", existing, err)
	}
	create(t, store, "late")
	late, err := store.Load(t.Context(), run.Ref{Tenant: "acme", ID: "late"})
	if err != nil {
		t.Fatal(err)
	}
	d, err := run.Decide(late, run.Admitted{Pool: "p", Limit: 1}, newYear)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Commit(t.Context(), port.WriteOf(d)); !errors.Is(err, port.ErrNoSlot) {
		t.Fatalf("after reopening: got %v, want a full pool", err)
	}
}

// TestCommitIsAtomic makes the write of the second run in a commit fail: neither run changes,
// nor do their leases. Rule 1 of shared/README.md.
func TestCommitIsAtomic(t *testing.T) {
	t.Parallel()
	store, db, _ := setupStore(t, filepath.Join(t.TempDir(), "sortie.db"))
	create(t, store, "first")
	create(t, store, "second")
	err := db.Write(t.Context(), func(tx *sqlite.Tx) error {
		_, err := tx.Exec("CREATE TRIGGER fails BEFORE UPDATE ON runs WHEN new.id = 'second' BEGIN SELECT RAISE(ABORT, 'damaged'); END")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	refs := []run.Ref{{Tenant: "acme", ID: "first"}, {Tenant: "acme", ID: "second"}}
	var writes []port.Write
	for _, ref := range refs {
		r, err := store.Load(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		d, err := run.Decide(r, run.Admitted{Pool: "p", Limit: 2}, newYear)
		if err != nil {
			t.Fatal(err)
		}
		writes = append(writes, port.WriteOf(d))
	}
	if err := store.Commit(t.Context(), writes...); err == nil {
		t.Error("got success, want the error of the second run")
	}
	for _, ref := range refs {
		if r, err := store.Load(t.Context(), ref); err != nil || r.Version != 1 || r.State != run.Pending {
			t.Errorf("%s: got state %s in version %d, %v", ref.ID, r.State, r.Version, err)
		}
	}
	if events, err := store.Events(t.Context(), refs[0], 0, 10); err != nil || len(events) != 1 {
		t.Errorf("got %d events of the first run, %v", len(events), err)
	}
	if pools, err := store.Pools(t.Context()); err != nil || len(pools) != 0 {
		t.Errorf("got pools %+v, %v", pools, err)
	}
}

func TestRecordExpiresByTheStoresClock(t *testing.T) {
	t.Parallel()
	store, _, now := setupStore(t, filepath.Join(t.TempDir(), "sortie.db"))
	create(t, store, "a", run.CancelRequested{})
	ref := run.Ref{Tenant: "acme", ID: "a"}
	now.Advance(time.Hour - time.Nanosecond)
	if _, err := store.Load(t.Context(), ref); err != nil {
		t.Fatalf("just before the expiry: got %v", err)
	}
	now.Advance(time.Nanosecond)
	if _, err := store.Load(t.Context(), ref); !errors.Is(err, port.ErrNotFound) {
		t.Fatalf("at the expiry: got %v", err)
	}
}

func TestPurgeDeletesMoreThanABatch(t *testing.T) {
	t.Parallel()
	store, db, _ := setupStore(t, filepath.Join(t.TempDir(), "sortie.db"))
	for i := range 130 {
		w, key := newRun(fmt.Sprint(i)), &port.IdempotencyKey{Key: fmt.Sprint(i)}
		d, err := run.Decide(w.Run, run.CancelRequested{}, newYear)
		if err != nil {
			t.Fatal(err)
		}
		w.Run, w.Events = d.Run, append(w.Events, d.Events...)
		if _, err := store.Create(t.Context(), w, key); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []int{120, 10, 0} {
		if n, err := store.Purge(t.Context(), newYear.Add(2*time.Hour), 120); err != nil || n != want {
			t.Fatalf("got %d purged, %v; want %d", n, err, want)
		}
	}
	for _, table := range []string{"runs", "events", "keys"} {
		if rows := count(t, db, "SELECT count(*) FROM "+table); rows != 0 {
			t.Errorf("got %d rows in %s, want 0", rows, table)
		}
	}
}

func count(t *testing.T, db *sqlite.DB, query string) (n int) {
	t.Helper()
	err := db.Read(t.Context(), func(tx *sqlite.Tx) error { return tx.QueryRow(query).Scan(&n) })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestReconcileCorrectsTheCount(t *testing.T) {
	t.Parallel()
	store, db, _ := setupStore(t, filepath.Join(t.TempDir(), "sortie.db"))
	create(t, store, "holds", run.Admitted{Pool: "p", Limit: 2})
	create(t, store, "waits", run.Enqueued{Pool: "p", Limit: 2})
	for _, damage := range []string{"UPDATE pools SET held = 7, queued = 0", "DELETE FROM pools", "UPDATE pools SET queued = -1"} {
		err := db.Write(t.Context(), func(tx *sqlite.Tx) error {
			_, err := tx.Exec(damage)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []int{1, 0} {
			if n, err := store.Reconcile(t.Context(), "acme", "p"); err != nil || n != want {
				t.Fatalf("after %s: got %d rows changed, %v; want %d", damage, n, err, want)
			}
		}
		pools, err := store.Pools(t.Context())
		if err != nil || len(pools) != 1 || pools[0] != (port.PoolUse{Tenant: "acme", Pool: "p", Held: 1, Queued: 1}) {
			t.Fatalf("after %s: got pools %+v, %v", damage, pools, err)
		}
	}
}

func TestStoreOnAFullDisk(t *testing.T) {
	t.Parallel()
	store, db, _ := setupStore(t, filepath.Join(t.TempDir(), "sortie.db"))
	create(t, store, "first")
	pages := count(t, db, "PRAGMA page_count")
	limit := func(pages int) {
		err := db.Write(t.Context(), func(tx *sqlite.Tx) error {
			return tx.QueryRow(fmt.Sprintf("PRAGMA max_page_count = %d", pages)).Scan(new(int))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	limit(pages + 2)
	big := newRun("big")
	big.Run.CorrelationID = strings.Repeat("x", 1<<20)
	if _, err := store.Create(t.Context(), big, nil); !fault.Is(err, fault.StoreFull) {
		t.Fatalf("create on a full disk: got %v", err)
	}
	r, err := store.Load(t.Context(), run.Ref{Tenant: "acme", ID: "first"})
	if err != nil {
		t.Fatal(err)
	}
	grown := r
	grown.CorrelationID = big.Run.CorrelationID
	d, err := run.Decide(grown, run.CancelRequested{}, newYear)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Commit(t.Context(), port.WriteOf(d)); !fault.Is(err, fault.StoreFull) {
		t.Fatalf("commit on a full disk: got %v", err)
	}
	if again, err := store.Load(t.Context(), r.Ref()); err != nil || again.Version != r.Version || again.State != r.State {
		t.Fatalf("after the refused commit: got run %+v, %v", again, err)
	}
	if events, err := store.Events(t.Context(), r.Ref(), 0, 10); err != nil || len(events) != 1 {
		t.Fatalf("after the refused commit: got events %+v, %v", events, err)
	}
	limit(1 << 20)
	if err := store.Commit(t.Context(), port.WriteOf(d)); err != nil {
		t.Fatalf("with free space: got %v, want success", err)
	}
	if _, err := store.Create(t.Context(), big, nil); err != nil {
		t.Fatalf("with free space: got %v, want success", err)
	}
}

func TestNewerStoreIsRefused(t *testing.T) {
	t.Parallel()
	store, db, now := setupStore(t, filepath.Join(t.TempDir(), "sortie.db"))
	create(t, store, "a")
	err := db.Write(t.Context(), func(tx *sqlite.Tx) error {
		_, err := tx.Exec("UPDATE migrations SET version = version + 1 WHERE owner = 'store'")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.NewStore(t.Context(), db, now); !errors.Is(err, sqlite.ErrNewer) {
		t.Fatalf("tables of a newer version: got %v", err)
	}
	if runs := count(t, db, "SELECT count(*) FROM runs"); runs != 1 {
		t.Fatalf("got %d runs", runs)
	}
}

func TestStoreCallEndsWithItsContext(t *testing.T) {
	t.Parallel()
	store, _, _ := setupStore(t, filepath.Join(t.TempDir(), "sortie.db"))
	create(t, store, "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.Create(ctx, newRun("b"), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("create: got %v", err)
	}
	if _, err := store.Load(ctx, run.Ref{Tenant: "acme", ID: "a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("read: got %v", err)
	}
	if _, err := store.Load(t.Context(), run.Ref{Tenant: "acme", ID: "b"}); !errors.Is(err, port.ErrNotFound) {
		t.Errorf("refused run: got %v, want ErrNotFound", err)
	}
}

// TestEveryQueryUsesAnIndex has the forms of the store's queries. One without an index would
// read all runs. Queries by primary key have an empty plan.
func TestEveryQueryUsesAnIndex(t *testing.T) {
	t.Parallel()
	_, db, now := setupStore(t, filepath.Join(t.TempDir(), "sortie.db"))
	newFeed(t, db, now)
	const doc = "SELECT doc FROM runs WHERE "
	for query, indexes := range map[string]string{
		doc + "tenant = ? AND id = ?":                                                                                                "runs_id",
		doc + "tenant = ?1 AND (id = ?2 OR task_id = ?2)":                                                                            "runs_id runs_task",
		doc + "tenant = ? || '' AND (created_at, n) < (?, ?) ORDER BY created_at DESC, n DESC":                                       "runs_created",
		doc + "tenant = ? || '' AND state = ? || '' AND (created_at, n) < (?, ?) ORDER BY created_at DESC, n DESC":                   "runs_state",
		doc + "act_by <= ? ORDER BY act_by, n":                                                                                       "runs_act",
		doc + "output_due <= ? ORDER BY output_due, n":                                                                               "runs_output",
		doc + "purge_at <= ? ORDER BY purge_at":                                                                                      "runs_purge",
		doc + "machine IS NOT NULL AND (tenant, id) > (?, ?) ORDER BY tenant, id":                                                    "runs_machine",
		doc + "tenant = ? || '' AND job = ? || '' AND state = ? || '' AND (created_at, n) < (?, ?) ORDER BY created_at DESC, n DESC": "runs_job",
		`SELECT tenant, id, place FROM runs WHERE tenant = ?1 AND pool = ?2 AND place IS NOT NULL UNION ALL
			SELECT tenant, id, place FROM side_slots WHERE tenant = ?1 AND pool = ?2 AND place IS NOT NULL
			ORDER BY place, id`: "runs_pool side_slots_pool",
		"SELECT n FROM jobs WHERE wake_at <= ? AND (wake_at, n) > (?, ?) ORDER BY wake_at, n":               "jobs_wake",
		"SELECT doc FROM jobs WHERE tenant = ? || '' AND id > ? ORDER BY id":                                "jobs_id",
		"SELECT doc FROM pool_records WHERE tenant = ? || '' AND id > ? ORDER BY id":                        "pool_records_id",
		"SELECT n FROM pool_records WHERE drain_due <= ? AND (drain_due, n) > (?, ?) ORDER BY drain_due, n": "pool_records_drain",
		"SELECT data FROM feed_records WHERE stream = ? AND position >= ? ORDER BY position":                "feed_records_position",
		"SELECT position FROM feed_records WHERE stream = ? AND id = ? AND packed < 3 AND appended_at > ?":  "feed_records_id",
		"SELECT n FROM feed_streams WHERE stream >= ? AND stream < ? AND stream > ? ORDER BY stream":        "feed_streams_stream",
		`SELECT due_at, stream FROM feed_streams WHERE due_at > 0 AND due_at <= ?1 AND (due_at, stream) > (?2, ?3)
			AND stream >= ?4 AND stream < ?5 ORDER BY due_at, stream`: "feed_streams_due",
		`SELECT deliveries.doc FROM deliveries JOIN webhooks ON webhooks.n = deliveries.webhook
			WHERE tenant = ? || '' AND id = ? || '' AND (expires_at IS NULL OR expires_at > ?) AND position = 0 + ?`: "webhooks_id deliveries_position",
		`SELECT deliveries.doc FROM deliveries JOIN webhooks ON webhooks.n = deliveries.webhook
			WHERE tenant = ? || '' AND id = ? || '' AND expires_at IS NULL ORDER BY position`: "webhooks_id deliveries_pending",
		`SELECT runs.doc FROM keys JOIN runs ON runs.n = keys.run WHERE keys.tenant = ? || '' AND keys.key = ? || ''`:                     "",
		"SELECT position FROM feed_marks WHERE stream = 0 + ? AND position > ? ORDER BY position":                                         "",
		"SELECT doc FROM warm_machines WHERE tenant = ? || '' AND pool = ? || '' ORDER BY id":                                             "",
		"SELECT job_results.doc FROM jobs JOIN job_results ON job_results.job = jobs.n WHERE jobs.tenant = ? || '' AND jobs.id = ? || ''": "jobs_id",
		"DELETE FROM outbox WHERE id = ?":                                           "outbox_id",
		"SELECT doc FROM events WHERE run = ? AND seq > ? ORDER BY seq LIMIT 0 + ?": "events_seq",
	} {
		var plan []string
		err := db.Read(t.Context(), func(tx *sqlite.Tx) error {
			plan = nil
			rows := tx.Query("EXPLAIN QUERY PLAN " + query)
			for rows.Next() {
				var id, parent, unused int
				var detail string
				if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
					return err
				}
				if _, index, uses := strings.Cut(detail, "INDEX "); uses && strings.HasPrefix(detail, "SEARCH") {
					plan = append(plan, strings.Fields(index)[0])
				} else if strings.HasPrefix(detail, "SCAN") || strings.Contains(detail, "B-TREE") {
					plan = append(plan, detail)
				}
			}
			return rows.Err()
		})
		if err != nil {
			t.Error(err)
			continue
		}
		if got := strings.Join(plan, " "); got != indexes {
			t.Errorf("%s: got plan %q, want %q", query, got, indexes)
		}
	}
}
