package runs_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestGraphChangesInFlight changes the last job of a diamond while one of the two jobs before it
// runs.
func TestGraphChangesInFlight(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		do   func(*fixture)
		want string
	}{
		"paused": {func(h *fixture) {
			_, err := h.service.Jobs.Pause(h.Context(), client, "report", change.Precondition{})
			h.ok(err)
		}, "report paused"},
		"deleted": {func(h *fixture) { h.ok(h.service.Jobs.Delete(h.Context(), client, "report", change.Precondition{})) }, ""},
		"deleted and stored again": {func(h *fixture) {
			h.ok(h.service.Jobs.Delete(h.Context(), client, "report", change.Precondition{}))
			h.putJobs("report\nafter: [prices, stock]\n")
		}, "report Running"},
		"after one of them":         {func(h *fixture) { h.putJobs("report\nafter: [prices]\n") }, "report Running"},
		"after another when":        {func(h *fixture) { h.putJobs("report\nafter: [prices, {job: stock, when: failure}]\n") }, "report upstream_failed"},
		"after none":                {func(h *fixture) { h.putJobs("report\n") }, ""},
		"after a job without a run": {func(h *fixture) { h.putJobs("idle\n", "report\nafter: [prices, idle]\n") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			h.putJobs(diamond[:4]...)
			h.wake(job.Ref{Tenant: client.Tenant, ID: "extract"})
			h.exit(firstRun("extract"), 0)
			h.exit(firstRun("prices"), 0)
			row.do(h)
			h.exit(firstRun("stock"), 0)
			h.wantGraph(row.want, "report")
		})
	}
}

// TestGraphsOfTenants has jobs of the same names in two tenants.
func TestGraphsOfTenants(t *testing.T) {
	t.Parallel()
	h := setup(t)
	other := port.Identity{Tenant: "other", Subject: "token:other", Scopes: access.Scopes()}
	put := func(who port.Identity, id, more string) error {
		_, _, err := h.service.Jobs.Put(h.Context(), who, id, []byte("image: worker\n"+more), change.Precondition{})
		return err
	}
	h.ok(put(other, "extract", ""))
	h.ok(put(other, "secret", ""))
	h.putJobs(diamond...)
	h.ok(put(other, "prices", "after: [extract]\n"))
	if err := put(client, "spy", "after: [secret]\n"); err == nil || !strings.Contains(err.Error(), `unknown job "secret"`) {
		t.Errorf("got %v, want an unknown job", err)
	}
	h.wake(job.Ref{Tenant: client.Tenant, ID: "extract"})
	h.exit(firstRun("extract"), 0)
	h.wantGraph("prices Running, stock Running", "prices", "stock")
	if runs, _, err := h.store.List(h.Context(), other.Tenant, port.Page{Limit: 10}); err != nil || len(runs) > 0 {
		t.Errorf("got %d runs of the other tenant and %v, want none", len(runs), err)
	}
}

// TestUpstreamIsKept keeps the first run of a graph while a job after it waits for another one.
func TestUpstreamIsKept(t *testing.T) {
	t.Parallel()
	h := setup(t)
	documents := append([]string{}, diamond[:4]...)
	documents[1] += "retention: {outputs: 1m, records: 2m}\n"
	h.putJobs(documents...)
	h.wake(job.Ref{Tenant: client.Tenant, ID: "extract"})
	h.exit(firstRun("extract"), 0)
	h.exit(firstRun("prices"), 0)
	h.advance(5 * time.Minute)
	h.sweep()
	if r := h.record(firstRun("prices")); !r.Held || !r.ExpiresAt.IsZero() {
		t.Errorf("got held %v until %s, want a held run that is awaited", r.Held, r.ExpiresAt)
	}
	h.exit(firstRun("stock"), 0)
	h.exit(firstRun("report"), 0)
	h.advance(2 * time.Hour)
	h.sweep()
	h.sweep()
	if r, err := h.store.Load(h.Context(), run.Ref{Tenant: client.Tenant, ID: firstRun("prices")}); err == nil && (r.Held || r.ExpiresAt.IsZero()) {
		t.Errorf("got held %v until %s, want an expired run", r.Held, r.ExpiresAt)
	}
}
