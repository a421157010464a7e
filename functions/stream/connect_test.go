package stream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/events/eventtype"
	functionstream "github.com/sortie-dev/sortie/functions/stream"
	"github.com/sortie-dev/sortie/local/proof/api/apicheck"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/gateway"
)

// keeper is a WebSocket API with its functions.
type keeper struct {
	*bench

	t        *testing.T
	document *apicheck.Document
	sockets  *fake.Sockets
	pusher   *stream.Pusher
	gate     gateway.SocketGateway
	ended    []int
}

func newKeeper(t *testing.T) *keeper {
	t.Helper()
	document, err := document()
	if err != nil {
		t.Fatal(err)
	}
	b := setup(t, settings)
	k := &keeper{bench: b, t: t, document: document, sockets: fake.NewSockets(nil)}
	log, half := slog.New(slog.DiscardHandler), func() float64 { return 0.5 }
	connections, pushes, seats := fake.NewConnections(nil), fake.NewPushes(nil), fake.NewSeats(b.Clock, nil)
	reception := stream.NewReception(b.feed, connections, pushes, seats, 2, series.Discard, b.Clock, half)
	k.pusher = stream.NewPusher(stream.PusherConfig{
		Feed: b.feed, Connections: connections, Sockets: k.sockets, Pushes: pushes, Seats: seats, Render: functionstream.Messages, Record: series.Discard,
		Clock: b.Clock, Log: log, Random: half,
		Holds: httpkit.HolderCheck(b.tokens, b.Clock.Now),
	})
	server, err := httpkit.New(httpkit.Config{
		Tokens: b.tokens, Tickets: b.tickets,
		Clock: b.Clock, Log: log, NewID: func() string { return "request-1" },
	}, functionstream.ConnectRoutes(reception)...)
	if err != nil {
		t.Fatal(err)
	}
	k.gate = gateway.SocketGateway{
		Gateway: gateway.Gateway{Handler: server, Log: log, Ended: func(_ context.Context, status int) { k.ended = append(k.ended, status) }},
		Path:    functionstream.SocketPath, Left: reception.Leave, Message: k.sockets.Disconnect,
	}
	return k
}

// event sends a gateway event about a connection and returns the response.
func (k *keeper) event(kind, id, headers, query string) string {
	k.t.Helper()
	answer, err := k.gate.Serve(k.t.Context(), fmt.Appendf(nil, `{"headers":{"Host":"x","Sec-WebSocket-Version":"13","Upgrade":"websocket"%s},"queryStringParameters":{%s},
		"requestContext":{"routeKey":"$%s","eventType":%q,"connectionId":%q,"stage":"dev","domainName":"a.execute-api.eu-central-1.amazonaws.com",
		"identity":{"sourceIp":"203.0.113.7"}},"isBase64Encoded":false}`, headers, query, strings.ToLower(kind), kind, id))
	if err != nil {
		k.t.Fatal(err)
	}
	return string(answer)
}

// connect opens a connection.
func (k *keeper) connect(id, headers, query string) {
	k.t.Helper()
	if got := k.event("CONNECT", id, headers, query); got != `{"statusCode":200}` {
		k.t.Fatalf("%s: got %s, want 200", id, got)
	}
	k.sockets.Connect(id)
}

// messages pushes and returns the messages that a connection received.
func (k *keeper) messages(id string) (all []contract.StreamMessage) {
	k.t.Helper()
	if err := k.pusher.Push(k.t.Context(), apitest.Tenant); err != nil {
		k.t.Fatal(err)
	}
	for _, text := range k.sockets.Sent(id) {
		var m contract.StreamMessage
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			k.t.Fatal(err)
		}
		if err := k.document.CheckSchema("StreamMessage", []byte(text)); err != nil {
			k.t.Errorf("%s: %v", text, err)
		}
		all = append(all, m)
	}
	return all
}

const bearer = `,"Authorization":"Bearer ` + token + `"`

// TestGatewaySendsTheSameStream checks that the readers of a gateway receive the same messages
// as those of the local WebSocket.
func TestGatewaySendsTheSameStream(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	k.add(t, eventtype.Accepted, eventtype.Failed)
	local := k.dial(t, "?after="+k.at(1))
	want := []contract.StreamMessage{local.message(t), local.message(t)}
	k.connect("c1=", bearer, fmt.Sprintf(`"after":%q`, k.at(1)))
	got := k.messages("c1=")
	if len(got) != 2 || got[0].RetryMS != 3000 || got[0].Type != want[0].Type || got[0].ID != want[0].ID {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	if string(got[1].Event) != string(want[1].Event) || got[1].Type != want[1].Type || got[1].ID != want[1].ID {
		t.Errorf("got %+v, want %+v", got[1], want[1])
	}
	k.connect("c2=", bearer+`,"Last-Event-ID":"other-7"`, "")
	got = k.messages("c2=")
	gap := contract.Gap{EventType: contract.StreamGap, Asked: "other-7", Oldest: k.at(1), Newest: k.at(2)}
	if len(got) != 3 || got[0].Gap == nil || *got[0].Gap != gap || got[0].ID != k.at(0) || got[2].ID != k.at(2) {
		t.Errorf("got %+v, want the gap %+v and both events", got, gap)
	}
	k.connect("c3=", bearer, "") // over the limit
	if got = k.messages("c3="); len(got) != 1 || got[0].Type != contract.MessageEnd || got[0].RetryMS != 5000 || got[0].ID != k.at(2) || k.sockets.Open("c3=") {
		t.Errorf("got %+v over the limit, want the end and no connection", got)
	}
	if answer := k.event("MESSAGE", "c1=", "", ""); answer != `{"statusCode":200}` || k.sockets.Open("c1=") {
		t.Errorf("got %s for data of the client, want its connection closed", answer)
	}
	k.event("DISCONNECT", "c1=", "", "")
	k.event("DISCONNECT", "never=", "", "")
	k.connect("c4=", bearer, `"types":"job.failed","after":"0"`)
	if got = k.messages("c4="); len(got) != 2 || got[1].ID != k.at(2) {
		t.Errorf("got %+v, want the failure alone", got)
	}
	k.Clock.Advance(2 * time.Hour)
	if got = k.messages("c4="); len(got) != 1 || got[0].Type != contract.MessageEnd || got[0].RetryMS != 3000 || got[0].ID != k.at(2) {
		t.Errorf("got %+v after two hours, want the end with the cursor", got)
	}
}

func TestHandshakesAreAuthorized(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	k.add(t, eventtype.Accepted)
	var ticket contract.Ticket
	answer := k.Call(t, http.MethodPost, "/v1/events/tickets", `{"types":["job.failed"],"label":"team=data"}`, "Authorization", "Bearer "+token)
	if err := json.Unmarshal([]byte(answer.Body), &ticket); err != nil {
		t.Fatal(err)
	}
	k.connect("ticket=", "", fmt.Sprintf(`"ticket":%q,"after":"0"`, ticket.Ticket))
	if got := k.messages("ticket="); len(got) != 1 {
		t.Errorf("got %+v, want the first message and no event but failures", got)
	}
	for name, row := range map[string]struct {
		headers, query string
		want           int
	}{
		"no token":         {"", "", 401},
		"a wrong token":    {`,"Authorization":"Bearer x"`, "", 401},
		"a wrong ticket":   {"", `"ticket":"x"`, 401},
		"a wider filter":   {"", fmt.Sprintf(`"ticket":%q,"types":"job.*"`, ticket.Ticket), 403},
		"a wider label":    {"", fmt.Sprintf(`"ticket":%q,"label":"team!=data"`, ticket.Ticket), 403},
		"a wrong label":    {bearer, `"label":"a in ("`, 400},
		"a wrong cursor":   {bearer, `"after":"x"`, 400},
		"an unknown name":  {bearer, `"limit":"1"`, 400},
		"a gap":            {bearer, `"after":"other-1","gap":"fail"`, 410},
		"an unknown types": {bearer, `"types":"job.none"`, 400},
	} {
		if got, want := k.event("CONNECT", name, row.headers, row.query), fmt.Sprintf(`{"statusCode":%d}`, row.want); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
		if k.ended[len(k.ended)-1] != row.want {
			t.Errorf("%s: got the statuses %v counted, want %d last", name, k.ended, row.want)
		}
		if got := k.messages(name); len(got) > 0 {
			t.Errorf("%s: got %+v, want no connection", name, got)
		}
	}
	if !slices.Contains(k.ended, http.StatusOK) {
		t.Errorf("got the statuses %v, want 200 too", k.ended)
	}
	for _, event := range []string{``, `[]`, `{}`, `{"requestContext":{"connectionId":"a"}}`, `{"httpMethod":"GET","path":"/v1/events/ws"}`} {
		if answer, err := k.gate.Serve(t.Context(), []byte(event)); err == nil {
			t.Errorf("%s: got %s, want an error", event, answer)
		}
	}
}
