package token

import (
	"errors"

	"github.com/golang-jwt/jwt/v5"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// Ticket authorizes reading the events of a tenant that a query selects.
type Ticket struct {
	TenantID    string `json:"tenantId"`
	WorkspaceID string `json:"workspaceId"`
	// Holder is the subject of the client that requested the ticket.
	Holder string `json:"holder"`
	// Query contains the parameters of the filter as a URL query; empty selects all events.
	Query string `json:"query,omitempty"`
	// Scopes are the read permissions of the ticket; empty means only events.
	Scopes []access.Scope `json:"scopes,omitempty"`
}

// ticket contains all claims of a ticket.
type ticket struct {
	Ticket
	jwt.RegisteredClaims
}

// Validate returns an error if a claim is missing that the JWT library treats as optional, or
// if the subject is not the holder.
func (t ticket) Validate() error {
	if t.ExpiresAt == nil || t.NotBefore == nil || t.IssuedAt == nil || t.TenantID == "" || t.Subject != t.Holder {
		return errors.New("a claim is missing")
	}
	return nil
}

// MintTicket returns a signed ticket. It sets the audience to AudienceTicket.
func MintTicket(key Key, t Ticket, use Use) (string, error) {
	use.Audience = AudienceTicket
	return key.mint(ticket{t, use.registered(t.Holder)})
}

// Ticket checks the signature, times, issuer and audience of a ticket, and returns its content.
// Fault: Unauthenticated if the ticket is not valid.
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
