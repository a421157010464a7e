package simulation

import (
	"context"

	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// client is the identity of all clients.
var client = port.Identity{Tenant: "local", Workspace: "local", Subject: "localhost", Scopes: access.Scopes()}

// errUnreachable is returned by calls to a process that has crashed or is unreachable.
var errUnreachable = fault.New(fault.Unavailable, "no response")

// clientCall makes a client's call. The response can be lost.
func (w *base) clientCall(do func(context.Context) error) (err error) {
	if w.down(networkOutage) {
		return errUnreachable
	}
	if !w.call(func(ctx context.Context) { err = do(ctx) }) || w.chance(w.plan.lostCalls) {
		return errUnreachable
	}
	return err
}
