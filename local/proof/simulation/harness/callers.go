package harness

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	if !w.Call(func(ctx context.Context) { err = do(ctx) }) || w.Injects("lost call", w.Plan.LostCalls) {
		return ErrUnreachable
	}
	return err
}

// Persist repeats a call of an owner until it is answered. A missing job counts as an answer.
func (w *Base) Persist(what string, do func(context.Context) error) {
	for {
		err := w.ClientCall(do)
		w.Note("%s: %v", what, err)
		f, known := errors.AsType[*fault.Fault](err)
		switch {
		case err == nil, known && f.Code == fault.NotFound:
			return
		case known && (f.Code == fault.InvalidRequest || f.Code == fault.Unprocessable):
			w.Broken = fmt.Errorf("%s: %w", what, err)
			return
		}
		w.Time.Sleep(w.UpTo(5 * time.Second))
	}
}
