package deployed

import (
	"context"

	"github.com/sortie-dev/sortie/shared/adapter/secrets"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

// ClientTokens returns the client tokens of the secret with the name or ARN
// SORTIE_SECRET_CLIENTS. The secret may be rotated while the process runs.
func ClientTokens(p *process.Process) httpkit.TokenSource {
	secret, err := secrets.Open[secrets.Clients](p.AWS(), p.Need("SORTIE_SECRET_CLIENTS"), secrets.Config{Clock: p.Clock(), Log: p.Log})
	p.Check(err)
	return clientTokens{secret}
}

type clientTokens struct {
	*secrets.Secret[secrets.Clients]
}

// Current implements httpkit.TokenSource.
func (s clientTokens) Current(ctx context.Context) (tokens []access.Token, required bool, err error) {
	document, err := s.Get(ctx)
	return document.All(), true, err
}
