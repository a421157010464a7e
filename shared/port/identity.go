package port

import (
	"slices"

	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// Identity is an authenticated caller.
type Identity struct {
	// Tenant owns everything that the caller can reach. Workspace is the project in which the
	// caller creates runs and resources.
	Tenant, Workspace string
	// Subject names the caller in records and logs.
	Subject string
	// Key is the name of the caller's token; empty for a caller without one.
	Key string
	// Anonymous: the caller is a program on the server's host and sent no token.
	Anonymous bool
	// Scopes are the caller's permissions.
	Scopes []access.Scope
	// Grant limits the caller's inference tasks.
	Grant access.Grant
}

// IdentityOf returns the identity of a token's holder.
func IdentityOf(t access.Token) Identity {
	return Identity{Tenant: t.Tenant, Workspace: t.Project, Subject: t.Subject(), Key: t.Name, Scopes: t.Scopes, Grant: t.Grant}
}

// Need returns a MissingScope fault if the caller does not have the scope. field is the request
// field that needs the scope; empty means the whole operation.
func (i Identity) Need(s access.Scope, field string) error {
	if i.May(s) {
		return nil
	}
	f := fault.New(fault.MissingScope, "the token does not have the scope %s", s)
	if f.Field = field; field != "" {
		f.Message += ", which " + field + " needs"
	}
	return f
}

// NeedModel returns a ModelUnknown fault if the caller's token may not use the model.
func (i Identity) NeedModel(model string) error {
	if i.Grant.Allows(model) {
		return nil
	}
	return fault.New(fault.ModelUnknown, "the token may not use the model %.80q; GET /v1/models lists those that it may use", model)
}

// May reports whether the caller has the scope.
func (i Identity) May(s access.Scope) bool { return slices.Contains(i.Scopes, s) }

// Actor returns the caller as the actor of events.
func (i Identity) Actor() run.Actor {
	by := run.Actor{Subject: i.Subject}
	for _, s := range i.Scopes {
		by.Scopes = append(by.Scopes, string(s))
	}
	return by
}
