// The function canary exports and downloads an entity. A schedule invokes it.
package main

import (
	"context"
	"net/http"
	"time"

	"github.com/sortie-dev/sortie/functions/canary"
	"github.com/sortie-dev/sortie/shared/adapter/secrets"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

// callLimit limits the duration of one call to the API.
const callLimit = 20 * time.Second

func main() {
	p := process.Start("canary")
	secret, err := secrets.Open[secrets.Canary](p.AWS(), p.Need("SORTIE_SECRET_CANARY"), secrets.Config{Clock: p.Clock(), Log: p.Log})
	p.Check(err)
	p.ServeEvent(canary.Handler(canary.Canary{
		URL: p.Need("SORTIE_PUBLIC_URL"), PI: p.Need("SORTIE_CANARY_PI"),
		Client: &http.Client{Timeout: callLimit}, Now: p.Clock().Now,
		Token: func(ctx context.Context) (string, error) {
			document, err := secret.Get(ctx)
			return document.Token, err
		},
	}))
}
