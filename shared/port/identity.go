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
