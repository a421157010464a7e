package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// The event types of a WebSocket API (API Gateway: "WebSocket API mapping template reference").
const (
	socketConnect    = "CONNECT"
	socketDisconnect = "DISCONNECT"
	socketMessage    = "MESSAGE"
)

// SocketGateway serves the events of a WebSocket API. All fields are required. It is safe for
// concurrent use.
type SocketGateway struct {
	// Gateway answers the handshake of a connection as a GET of Path. The context of the
	// request has the ConnectionID. A status of 400 or above refuses the connection.
	Gateway Gateway
	Path    string
	// Left is called after a connection was closed, Message after its client sent data.
	Left, Message func(ctx context.Context, id string) error
}

type connectionKey struct{}

// ConnectionID returns the id of the connection whose handshake a handler answers. It is empty
// for other requests.
func ConnectionID(ctx context.Context) string {
	id, _ := ctx.Value(connectionKey{}).(string)
	return id
}

// Serve answers one event. It returns an error if the payload is not an event, or if Left or
// Message fails.
func (g SocketGateway) Serve(ctx context.Context, payload []byte) ([]byte, error) {
	ctx, cancel := Within(ctx)
	defer cancel()
	var event events.APIGatewayWebsocketProxyRequest
	if err := json.Unmarshal(payload, &event); err != nil {
		return nil, malformed(errors.New("want the JSON of an event of a WebSocket API"))
	}
	id, status := event.RequestContext.ConnectionID, http.StatusOK
	if id == "" {
		return nil, malformed(errors.New("the event has no connection, want an event of a WebSocket API"))
	}
	var err error
	switch kind := event.RequestContext.EventType; kind {
	case socketConnect:
		status, err = g.connect(context.WithValue(ctx, connectionKey{}, id), &event)
	case socketDisconnect:
		err = g.Left(ctx, id)
	case socketMessage:
		err = g.Message(ctx, id)
	default:
		err = malformed(fmt.Errorf("unknown type %.20q of an event of a WebSocket API", kind))
	}
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `{"statusCode":%d}`, status), nil
}

// connect answers a handshake.
func (g SocketGateway) connect(ctx context.Context, event *events.APIGatewayWebsocketProxyRequest) (status int, err error) {
	e := events.APIGatewayProxyRequest{
		HTTPMethod: http.MethodGet, Path: g.Path, Headers: event.Headers, MultiValueHeaders: event.MultiValueHeaders,
		QueryStringParameters: event.QueryStringParameters, MultiValueQueryStringParameters: event.MultiValueQueryStringParameters,
	}
	e.RequestContext.DomainName, e.RequestContext.Identity.SourceIP = event.RequestContext.DomainName, event.RequestContext.Identity.SourceIP
	r, err := Request(ctx, &e)
	if err != nil {
		return 0, malformed(err)
	}
	a := newAnswer(r, "")
	if failed := g.Gateway.handle(a, r); failed != nil {
		a = g.Gateway.refuse(r, fault.Wrap(failed, fault.Internal, "the handshake failed"))
	}
	g.Gateway.ended(ctx, a.status)
	return a.status, nil
}
