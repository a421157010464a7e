package grants

import (
	"context"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/app/token"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// TicketLife is the time for which a ticket is valid.
const TicketLife = time.Hour

// Ticket signs a ticket for reading the events of the caller's tenant that the query selects. If
// the caller may read runs, the ticket also permits reading the answer of the task that the query
// selects, or of every task if the query names none. It is valid for TicketLife, but only as long
// as the caller's token. Fault: InvalidRequest for a query that does not fit into a ticket.
func (s *Tokens) Ticket(ctx context.Context, who port.Identity, query string) (text string, expiresAt time.Time, err error) {
	key, err := s.key(ctx)
	if err != nil {
		return "", time.Time{}, err
	}
	scopes := slices.DeleteFunc([]access.Scope{access.EventsRead, access.RunsRead}, func(scope access.Scope) bool { return !who.May(scope) })
	now := s.clock.Now().UTC().Truncate(time.Second)
	expiresAt = now.Add(TicketLife)
	text, err = token.MintTicket(key,
		token.Ticket{TenantID: who.Tenant, WorkspaceID: who.Workspace, Holder: who.Subject, Query: query, Scopes: scopes},
		token.Use{ID: s.hex(16), IssuedAt: now, ExpiresAt: expiresAt})
	if err == nil && len(text) > limit.Token {
		err = fault.Invalid("types", "the filter makes a ticket of %d bytes, want one that fits into %d", len(text), limit.Token)
	}
	return text, expiresAt, err
}

// OpenTicket returns the identity of a ticket and its query. It does not check the token of the
// holder; httpkit does. Fault: Unauthenticated.
func (s *Tokens) OpenTicket(ctx context.Context, text string) (port.Identity, string, error) {
	keys, err := s.published(ctx)
	if err != nil {
		return port.Identity{}, "", err
	}
	t, err := s.verifier.Ticket(text, keys)
	if err != nil {
		return port.Identity{}, "", err
	}
	if len(t.Scopes) == 0 {
		t.Scopes = []access.Scope{access.EventsRead}
	}
	return port.Identity{Tenant: t.TenantID, Workspace: t.WorkspaceID, Subject: t.Holder, Scopes: t.Scopes}, t.Query, nil
}
