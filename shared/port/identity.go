package port

import (
	"slices"

	"github.com/sortie-dev/sortie/shared/access"
)

// Identity is an authenticated caller.
type Identity struct {
	// Tenant owns everything that the caller reaches. Workspace is the project of
	// what the caller creates.
	Tenant, Workspace string
	// Subject names the caller in records and logs.
	Subject string
	// Anonymous: the caller is a program of the server's own host that sent no token.
	Anonymous bool
	// Scopes are the caller's permissions.
	Scopes []access.Scope
}

// May reports whether the caller has the scope.
func (i Identity) May(s access.Scope) bool { return slices.Contains(i.Scopes, s) }
