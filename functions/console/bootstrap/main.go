// The function console serves the web console. It calls the API at its public address, with the
// token of the reader. Its own permissions are for the sessions of browsers only.
package main

import (
	"crypto/rand"
	"net/http"

	"github.com/sortie-dev/sortie/functions/console"
	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/session"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

func main() {
	p := process.Start("console")
	tokens := deployed.ClientTokens(p)
	p.ServeStream(console.Routes(page.Config{
		Sessions: session.NewSessions(deployed.Store(p), tokens, p.Clock(), rand.Reader),
		API:      http.DefaultTransport, URL: p.Need("SORTIE_PUBLIC_URL"), Clock: p.Clock(), Version: p.Version(),
	}), tokens)
}
