// Package clients has the client tokens of a deployed front door: a secret, which
// may be rotated while processes live.
package clients

import (
	"context"

	"github.com/sortie-dev/sortie/shared/adapter/secrets"
	"github.com/sortie-dev/sortie/shared/httpkit"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
)

// Tokens reads SORTIE_SECRET_CLIENTS, the secret's name or ARN.
func Tokens(p *process.Process) httpkit.TokenSource {
	secret, err := secrets.Open[secrets.Clients](p.AWS(), p.Need("SORTIE_SECRET_CLIENTS"), secrets.Config{Clock: p.Clock(), Log: p.Log})
	p.Check(err)
	return source{secret}
}

type source struct {
	*secrets.Secret[secrets.Clients]
}

// Current gives the tokens that are good now.
func (s source) Current(ctx context.Context) ([]string, error) {
	document, err := s.Get(ctx)
	return document.Tokens, err
}
