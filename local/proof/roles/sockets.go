package roles

import (
	"context"
	"fmt"
	"net/url"
)

// Connect opens a WebSocket of the API with a ticket, like a gateway.
func (h *Home) Connect(ctx context.Context, id, ticket string) error {
	h.services.sockets.connect(id)
	return h.socket(ctx, "CONNECT", id, "", url.Values{"ticket": {ticket}})
}

// ConnectWithToken opens a WebSocket with the token of the client.
func (h *Home) ConnectWithToken(ctx context.Context, id string) error {
	h.services.sockets.connect(id)
	return h.socket(ctx, "CONNECT", id, ClientToken, nil)
}

// Say sends a message from the client of a connection. The API closes the connection for that.
func (h *Home) Say(ctx context.Context, id string) error {
	return h.socket(ctx, "MESSAGE", id, "", nil)
}

// Leave reports the end of a connection to the API.
func (h *Home) Leave(ctx context.Context, id string) error {
	return h.socket(ctx, "DISCONNECT", id, "", nil)
}

// Got returns the number of messages sent to a connection, and whether the connection is open.
func (h *Home) Got(id string) (messages int, open bool) { return h.services.sockets.got(id) }

func (h *Home) socket(ctx context.Context, kind, id, token string, query url.Values) error {
	event, err := socketEvent(kind, id, token, query)
	if err != nil {
		return err
	}
	answer, err := h.lambda.Invoke(ctx, "socket", event)
	if err == nil && string(answer) != `{"statusCode":200}` {
		err = fmt.Errorf("%s: got %s, want the status 200", kind, answer)
	}
	return err
}

// Check invokes the canary.
func (h *Home) Check(ctx context.Context) error {
	_, err := h.lambda.Invoke(ctx, "canary", []byte(scheduledEvent))
	return err
}
