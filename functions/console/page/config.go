package page

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/sortie-dev/sortie/functions/console/session"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// Prefix is the path of the console. The paths of all its routes but "/" begin with it.
const Prefix = "/console/"

// Config configures Routes.
type Config struct {
	Sessions *session.Sessions
	// API carries out requests to the API. It gets the path of an operation, and the token of
	// the session in the Authorization header.
	API http.RoundTripper
	// URL is the address of the API, without a slash at the end.
	URL   string
	Clock clock.Clock
	// Version is the version that the pages show.
	Version string
	// Settings are shown to readers with the scope admin. They must not have secrets.
	Settings []Setting
}

// Setting is a setting of the deployment that differs from its default.
type Setting struct{ Name, Value string }

// LocalPath returns a path of the console from a query or a form, or the home page if the text is
// another address.
func LocalPath(text string) string {
	u, err := url.Parse(text)
	clean := err == nil && u.Scheme == "" && u.Host == "" && u.User == nil && u.Opaque == "" && strings.HasPrefix(u.Path, Prefix) &&
		!strings.ContainsAny(text, "\\\r\n\t") && !strings.Contains(u.Path, "//") && !strings.Contains(u.Path, "..")
	if !clean || len(text) > 2048 {
		return Home
	}
	return u.RequestURI()
}

// The address to which "/" and the console's own address redirect, and the one for sign-in.
const (
	Home       = Prefix + "overview"
	PathSignIn = Prefix + "sign-in"
)
