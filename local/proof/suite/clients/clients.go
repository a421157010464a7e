// Package clients has the further client tokens of a deployment that the suite
// tests. It is separate so that programs can fill a deployment with them without
// linking the tests.
package clients

import "github.com/sortie-dev/sortie/shared/access"

// Others are client tokens that differ from that of the suite.
type Others struct {
	// Stranger is a token of another tenant with all scopes.
	Stranger string
	// Reader is a token of the suite's tenant with the scope runs:read alone.
	Reader string
}

// Records returns the records of the tokens, for a deployment where the suite's own
// token is of the default tenant.
func (o Others) Records() []access.Token {
	reader := access.Full("reader", o.Reader, access.Default, access.Default)
	reader.Scopes = []access.Scope{access.RunsRead}
	return []access.Token{access.Full("stranger", o.Stranger, "stranger", "stranger"), reader}
}
