package token_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/token"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// TestTicketAuthorizesStreamsOnly checks that a ticket is refused as a worker's token, and a
// worker's token as a ticket.
func TestTicketAuthorizesStreamsOnly(t *testing.T) {
	t.Parallel()
	own, other := newKey(t, "own"), newKey(t, "other")
	want := token.Ticket{TenantID: "a", WorkspaceID: "w", Holder: "token:123456", Query: "types=job.*", Scopes: []access.Scope{access.EventsRead}}
	sign := func(k key, t token.Ticket) string {
		text, err := token.MintTicket(k.signing(), t, token.Use{Audience: token.AudienceWorker, ID: "x", IssuedAt: epoch, ExpiresAt: epoch.Add(time.Hour)})
		if err != nil {
			panic(err)
		}
		return text
	}
	valid := sign(own, want)
	noTenant := want
	noTenant.TenantID = ""
	worker := mint(t, own, token.Claims{TenantID: "a", WorkspaceID: "w", RunID: "t", TaskID: "t", Attempt: 1})
	for name, row := range map[string]struct {
		text  string
		after time.Duration
		ok    bool
	}{
		"valid":             {valid, 0, true},
		"almost expired":    {valid, time.Hour - time.Second, true},
		"expired":           {valid, time.Hour, false},
		"of the future":     {valid, -2 * time.Minute, false},
		"unknown key":       {sign(other, want), 0, false},
		"without a tenant":  {sign(own, noTenant), 0, false},
		"a worker's token":  {worker, 0, false},
		"empty":             {"", 0, false},
		"changed":           {changed(valid, len(valid)-86), 0, false},
		"without signature": {valid[:len(valid)-86], 0, false},
	} {
		now := clock.NewVirtual(epoch.Add(row.after))
		got, err := token.NewVerifier(now).Ticket(row.text, published(own))
		if (err == nil) != row.ok || row.ok && !reflect.DeepEqual(got, want) || !row.ok && !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("%s: got %+v, %v, want valid: %t", name, got, err, row.ok)
		}
		if _, err := token.NewVerifier(now).Verify(row.text, token.AudienceWorker, "t", published(own)); name != "a worker's token" && !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("%s: got %v as a worker's token, want it refused", name, err)
		}
	}
}

// changed returns a text with another character of base64 at a position.
func changed(text string, at int) string {
	other := "A"
	if text[at] == other[0] {
		other = "B"
	}
	return text[:at] + other + text[at+1:]
}
