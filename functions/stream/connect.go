package stream

import (
	"errors"
	"net/http"

	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/gateway"
)

// SocketPath is the path of the WebSocket.
const SocketPath = "/v1/events/ws"

// ConnectRoutes returns the route of WebSockets whose connections a gateway keeps open. The
// handler accepts the handshake. A stream.Pusher sends the messages.
func ConnectRoutes(reception *stream.Reception) []httpkit.Route {
	return []httpkit.Route{
		route(SocketPath, func(w http.ResponseWriter, r *http.Request) error {
			id := gateway.ConnectionID(r.Context())
			if id == "" {
				return errors.New("a handshake without a connection")
			}
			q, err := parse(r)
			if err != nil {
				return err
			}
			if err := reception.Open(r.Context(), httpkit.CallerOf(r.Context()), q, id); err != nil {
				return err
			}
			w.WriteHeader(http.StatusOK)
			return nil
		}),
	}
}
