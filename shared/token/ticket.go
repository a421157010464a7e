package token

import (
	"errors"

	"github.com/golang-jwt/jwt/v5"

	"github.com/sortie-dev/sortie/shared/access"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/limit"
)

// Ticket is what a ticket authorizes: to read the events of a tenant that a query
// selects.
type Ticket struct {
	TenantID    string `json:"tenantId"`
	WorkspaceID string `json:"workspaceId"`
	// Holder is the subject of the client that got the ticket.
	Holder string `json:"holder"`
	// Query has the parameters of the filter, as in a URL; empty selects all events.
	Query string `json:"query,omitempty"`
	// Scopes are what the client may read; empty is events alone.
	Scopes []access.Scope `json:"scopes,omitempty"`
}

// ticket is every claim of a ticket.
type ticket struct {
	Ticket
	jwt.RegisteredClaims
}

// Validate requires the claims that the library treats as optional.
func (t ticket) Validate() error {
	if t.ExpiresAt == nil || t.NotBefore == nil || t.IssuedAt == nil || t.TenantID == "" || t.Subject != t.Holder {
		return errors.New("a claim is missing")
	}
	return nil
}

// MintTicket signs a ticket. Its audience is AudienceTicket.
func MintTicket(key Key, t Ticket, use Use) (string, error) {
	use.Audience = AudienceTicket
	return key.mint(ticket{t, use.registered(t.Holder)})
}

// Ticket checks the signature, times, issuer and audience of a ticket. Its fault is
// Unauthenticated.
func (v *Verifier) Ticket(text string, keys Keys) (Ticket, error) {
	if len(text) > limit.Token {
		return Ticket{}, errTicket(errors.New("the ticket is too long"))
	}
	var t ticket
	if _, err := parse(text, &t, keys, v.rules(AudienceTicket)); err != nil {
		return Ticket{}, errTicket(err)
	}
	if err := v.checkIssue(t.IssuedAt); err != nil {
		return Ticket{}, errTicket(err)
	}
	return t.Ticket, nil
}

func errTicket(cause error) error {
	return fault.Wrap(cause, fault.Unauthenticated, "invalid or expired ticket, want one of POST /v1/events/tickets")
}
