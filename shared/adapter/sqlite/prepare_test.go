package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestStatementsArePreparedOnce makes each read, and a write of a sweep, three times: the last
// time SQLite has all statements.
func TestStatementsArePreparedOnce(t *testing.T) {
	t.Parallel()
	ctx, now := t.Context(), clock.NewVirtual(time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC))
	db, err := Open(ctx, filepath.Join(t.TempDir(), "sortie.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s, err := NewStore(ctx, db, now)
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewFeed(ctx, db, FeedConfig{Clock: now, Retention: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	const tenant, id = "acme", "x"
	hook := webhook.Ref{Tenant: tenant, ID: id}
	if _, err := f.Append(ctx, tenant, port.Batch{Records: []port.FeedRecord{{ID: id, At: now.Now(), Data: []byte("x")}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.SaveWebhook(ctx, webhook.Webhook{Tenant: tenant, ID: id}, &webhook.Progress{Tenant: tenant, ID: id}); err != nil {
		t.Fatal(err)
	}
	page := port.Page{Limit: 3}
	for name, do := range map[string]func(){
		"Load":              func() { _, _ = s.Load(ctx, run.Ref{Tenant: tenant, ID: id}) },
		"Find":              func() { _, _ = s.Find(ctx, tenant, id) },
		"FindByKey":         func() { _, _ = s.FindByKey(ctx, tenant, port.IdempotencyKey{Key: id}) },
		"Events":            func() { _, _ = s.Events(ctx, run.Ref{Tenant: tenant, ID: id}, 0, 3) },
		"List":              func() { _, _, _ = s.List(ctx, tenant, page) },
		"List of a state":   func() { _, _, _ = s.List(ctx, tenant, port.Page{Limit: 3, State: run.Running}) },
		"List of a job":     func() { _, _, _ = s.List(ctx, tenant, port.Page{Limit: 3, JobID: id}) },
		"Due":               func() { _, _, _ = s.Due(ctx, now.Now(), "", 3) },
		"OutputsDue":        func() { _, _, _ = s.OutputsDue(ctx, now.Now(), "", 3) },
		"HeartbeatsDue":     func() { _, _, _ = s.HeartbeatsDue(ctx, now.Now(), "", 3) },
		"WithMachine":       func() { _, _ = s.WithMachine(ctx, run.Ref{}, 3) },
		"Ended":             func() { _, _ = s.Ended(ctx, 3) },
		"Purge":             func() { _, _ = s.Purge(ctx, now.Now(), 3) },
		"LoadJob":           func() { _, _ = s.LoadJob(ctx, tenant, id) },
		"JobVersion":        func() { _, _ = s.JobVersion(ctx, tenant, id, 1) },
		"LastResult":        func() { _, _ = s.LastResult(ctx, tenant, id) },
		"DeletedVersion":    func() { _, _ = s.DeletedVersion(ctx, tenant, id) },
		"Jobs":              func() { _, _, _ = s.Jobs(ctx, tenant, page) },
		"JobsDue":           func() { _, _, _ = s.JobsDue(ctx, now.Now(), "", 3) },
		"LoadPool":          func() { _, _ = s.LoadPool(ctx, platform.PoolRef{Tenant: tenant, ID: id}) },
		"PoolRecords":       func() { _, _, _ = s.PoolRecords(ctx, tenant, page) },
		"PoolsDue":          func() { _, _, _ = s.PoolsDue(ctx, now.Now(), "", 3) },
		"Pools":             func() { _, _ = s.Pools(ctx) },
		"Queue":             func() { _, _ = s.Queue(ctx, tenant, id, 3) },
		"Holders":           func() { _, _ = s.Holders(ctx, tenant, id, 3) },
		"QueueLength":       func() { _, _ = s.QueueLength(ctx, tenant, id, 3) },
		"QueueAhead":        func() { _, _ = s.QueueAhead(ctx, tenant, platform.Slot{Pool: id}, 3) },
		"Reconcile":         func() { _, _ = s.Reconcile(ctx, tenant, id) },
		"WarmMachines":      func() { _, _ = s.WarmMachines(ctx, platform.PoolRef{Tenant: tenant, ID: id}) },
		"Stored":            func() { _, _, _ = s.Stored(ctx, "", 3) },
		"Account":           func() { _, _ = s.Account(ctx, tenant, id) },
		"LoadResource":      func() { _, _ = s.LoadResource(ctx, port.ResourceRef{Tenant: tenant, Kind: "model", ID: id}) },
		"Resources":         func() { _, _, _ = s.Resources(ctx, tenant, "model", "", page) },
		"ResourcesDue":      func() { _, _, _ = s.ResourcesDue(ctx, "model", now.Now(), "", 3) },
		"LoadWebhook":       func() { _, _ = s.LoadWebhook(ctx, hook) },
		"Webhooks":          func() { _, _, _ = s.Webhooks(ctx, tenant, page) },
		"WebhooksDue":       func() { _, _, _ = s.WebhooksDue(ctx, now.Now(), "", 3) },
		"Progress":          func() { _, _ = s.Progress(ctx, hook) },
		"Delivery":          func() { _, _ = s.Delivery(ctx, hook, 1) },
		"PendingDeliveries": func() { _, _ = s.PendingDeliveries(ctx, hook, 3) },
		"Deliveries":        func() { _, _ = s.Deliveries(ctx, hook, webhook.Failed, 9, 3) },
		"PurgeDeliveries":   func() { _, _ = s.PurgeDeliveries(ctx, now.Now(), 3) },
		"Head":              func() { _, _ = f.Head(ctx, tenant) },
		"Read":              func() { _, _ = f.Read(ctx, tenant, 0, 3) },
		"Marks":             func() { _, _ = f.Marks(ctx, tenant, 0, 3) },
		"Cursor":            func() { _, _ = f.Cursor(ctx, tenant, id) },
		"Streams":           func() { _, _, _ = f.Streams(ctx, tenant, "", 3) },
		"Feed.Due":          func() { _, _, _ = f.Due(ctx, tenant, now.Now(), "", 3) },
		"Trim":              func() { _, _ = f.Trim(ctx, tenant, 3) },
	} {
		prepared := 0
		count := sqlite.AuthorizeFunc(func(sqlite.Action) sqlite.AuthResult {
			prepared++ // SQLite asks when it prepares a statement
			return sqlite.AuthResultOK
		})
		do()
		for _, conn := range db.connections() {
			if err := conn.SetAuthorizer(count); err != nil {
				t.Fatal(err)
			}
		}
		do()
		prepared = 0
		do()
		if prepared > 0 {
			t.Errorf("%s is prepared again at each execution", name)
		}
	}
}

// connections returns the open and idle connections.
func (d *DB) connections() []*sqlite.Conn {
	all := []*sqlite.Conn{d.writer}
	for _, r := range d.readers.idle {
		all = append(all, r.conn)
	}
	return all
}
