package runs_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/app/grants"
	systemclock "github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestTicketHasOnlyScopesOfItsCaller signs tickets for callers with different scopes.
func TestTicketHasOnlyScopesOfItsCaller(t *testing.T) {
	t.Parallel()
	now := systemclock.NewVirtual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	tokens := grants.NewTokens(fake.NewSigner(nil, "key"), now, func(n int) string { return strings.Repeat("0", 2*n) })
	for _, row := range []struct{ of, want []access.Scope }{
		{access.Scopes(), []access.Scope{access.EventsRead, access.RunsRead}},
		{[]access.Scope{access.RunsRead, access.EventsRead}, []access.Scope{access.EventsRead, access.RunsRead}},
		{[]access.Scope{access.EventsRead}, []access.Scope{access.EventsRead}},
		{[]access.Scope{access.EventsRead, access.RunsWrite, access.Admin}, []access.Scope{access.EventsRead}},
	} {
		who := port.Identity{Tenant: "a", Workspace: "w", Subject: "token:1", Scopes: row.of}
		text, until, err := tokens.Ticket(t.Context(), who, "types=job.failed")
		if err != nil || !until.Equal(now.Now().Add(time.Hour)) {
			t.Fatalf("got a ticket until %s, %v, want one for an hour", until, err)
		}
		got, query, err := tokens.OpenTicket(t.Context(), text)
		if err != nil || !slices.Equal(got.Scopes, row.want) || query != "types=job.failed" || got.Tenant != "a" || got.Subject != "token:1" {
			t.Errorf("a caller with %v: got %+v for %q, %v, want the scopes %v", row.of, got, query, err, row.want)
		}
	}
}
