package deployed

import (
	"context"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/adapter/secrets"
	"github.com/sortie-dev/sortie/shared/adapter/secrets/seed"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

// Feed returns the streams in the table of store, with the settings of the service.
func Feed(p *process.Process, store *dynamo.Store) port.Feed {
	feed, err := dynamo.NewFeed(store, dynamo.FeedConfig{Retention: p.Settings().EventRetention})
	p.Check(err)
	return feed
}

// EventKeys returns the keys that sign events. The seed is the parameter named by
// SORTIE_EVENT_SEED. The parameter may be replaced while the process runs.
func EventKeys(p *process.Process, store *dynamo.Store) port.EventKeys {
	secret, err := seed.Open(p.AWS(), p.Need("SORTIE_EVENT_SEED"), secrets.Config{Clock: p.Clock(), Log: p.Log})
	p.Check(err)
	read := func(ctx context.Context) ([]byte, error) {
		document, err := secret.Get(ctx)
		return document.Bytes(), err
	}
	return delivery.NewEndorsedKeys(read, store, Signer(p), p.Clock())
}

// PublishedEventKeys returns the public keys of events. It cannot sign.
func PublishedEventKeys(p *process.Process, store *dynamo.Store) port.EventKeys {
	return delivery.NewEndorsedKeys(nil, store, nil, p.Clock())
}
