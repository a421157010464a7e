package stream_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// TestRevokedTokenEndsItsStreams opens a stream of each kind with a token and with its ticket,
// and revokes the token. All of them end, and the ticket opens no other stream. The stream of
// another tenant's token remains open.
func TestRevokedTokenEndsItsStreams(t *testing.T) {
	t.Parallel()
	b := setup(t, settings)
	b.add(t, eventtype.Accepted)
	var ticket contract.Ticket
	answer := b.Call(t, http.MethodPost, "/v1/events/tickets", "", "Authorization", "Bearer "+token)
	if err := json.Unmarshal([]byte(answer.Body), &ticket); err != nil {
		t.Fatal(err)
	}
	byTicket := "ticket=" + ticket.Ticket
	streams := map[string]opened{"token": b.open(t, path+"?after=latest"), "ticket": b.open(t, path+"?after=latest&"+byTicket)}
	sockets := map[string]socket{"token": b.dial(t, "?after=latest"), "ticket": b.dial(t, "?after=latest&"+byTicket, "Authorization", "")}
	other := b.open(t, path+"?after=latest", "Authorization", "Bearer "+stranger)
	for _, s := range streams {
		s.message(t)
	}
	for _, s := range sockets {
		s.message(t)
	}
	other.message(t)
	b.tokens.set(access.Full("stranger", stranger, "tenant-b", "theirs"))
	b.Clock.Advance(httpkit.RecheckInterval)
	for name, s := range streams {
		if rest, _ := io.ReadAll(s); strings.Contains(string(rest), "data:") { // the connection is cut
			t.Errorf("stream by %s: got %q, want its end", name, rest)
		}
	}
	for name, s := range sockets {
		for {
			_, text, err := s.Read(t.Context())
			if err != nil {
				break
			}
			if strings.Contains(string(text), `"event":`) {
				t.Errorf("WebSocket by %s: got %s, want its end", name, text)
			}
		}
	}
	b.add(t, eventtype.Failed)
	for _, call := range []string{path + "?" + byTicket, "/v1/events/ws?" + byTicket} {
		if answer := b.Call(t, http.MethodGet, call, ""); answer.Status != http.StatusUnauthorized {
			t.Errorf("%s with the ticket: got %d %s, want 401", call[:14], answer.Status, answer.Body)
		}
	}
	b.Clock.Advance(stream.CursorInterval)
	other.message(t)
}
