// Package clients has the additional client tokens of a deployment that the suite tests. It is
// separate so that programs can configure a deployment with them without linking the tests.
package clients

import "github.com/sortie-dev/sortie/shared/domain/access"

// Others are client tokens besides the suite's own.
type Others struct {
	// Stranger is a token of another tenant with all scopes.
	Stranger string
	// Reader is a token of the suite's tenant with only the scope runs:read.
	Reader string
}

// Records returns the token records for a deployment in which the suite's own token belongs to
// the default tenant.
func (o Others) Records() []access.Token {
	reader := access.Full("reader", o.Reader, access.Default, access.Default)
	reader.Scopes = []access.Scope{access.RunsRead}
	return []access.Token{access.Full("stranger", o.Stranger, "stranger", "stranger"), reader}
}
