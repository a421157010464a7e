package harness

import (
	"context"

	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// Client is the identity of all clients.
var Client = port.Identity{Tenant: "local", Workspace: "local", Subject: "localhost", Scopes: access.Scopes()}

// ErrUnreachable is returned by calls to a process that has crashed or is unreachable.
var ErrUnreachable = fault.New(fault.Unavailable, "no response")

// ClientCall makes a client's call. The response can be lost.
func (w *Base) ClientCall(do func(context.Context) error) (err error) {
	if w.Down(NetworkOutage) {
		return ErrUnreachable
	}
	if !w.Call(func(ctx context.Context) { err = do(ctx) }) || w.Chance(w.Plan.LostCalls) {
		return ErrUnreachable
	}
	return err
}
