package console

import (
	"net/http"
	"strings"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// Prefix is the path of the console. The paths of all its routes but "/" begin with it.
const Prefix = "/console/"

// The address to which "/" and the console's own address redirect, and the one for sign-in.
const (
	home       = Prefix + "overview"
	pathSignIn = Prefix + "sign-in"
)

// Config configures Routes.
type Config struct {
	Sessions *Sessions
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

// console serves the pages.
type console struct {
	Config
	guard http.CrossOriginProtection
}

// Routes returns the routes of the console. They are not operations of the API, so they are not
// in the OpenAPI document.
func Routes(config Config) []httpkit.Route {
	c := &console{Config: config}
	routes := []httpkit.Route{
		{Method: http.MethodGet, Pattern: "/{$}", Access: httpkit.ForAll, Handle: c.root},
		c.open(http.MethodGet, "/console", c.toHome),
		c.open(http.MethodGet, Prefix+"{$}", c.toHome),
		c.open(http.MethodGet, Prefix+"static/{name}", c.static, "v"),
		c.open(http.MethodGet, pathSignIn, c.showSignIn, "next"),
		c.open(http.MethodPost, pathSignIn, c.signIn),
		c.open(http.MethodPost, Prefix+"sign-out", c.signOut),
		c.open(http.MethodGet, pathTicket, c.showTicket, "ticket"),
		c.open(http.MethodPost, pathTicket, c.useTicket),
		{Method: http.MethodPost, Pattern: Prefix + "tickets", Access: httpkit.ForAll, Handle: c.createTicket},
		c.open(http.MethodGet, Prefix+pathStream, c.stream),
		c.open(http.MethodGet, Prefix+"runs/{run_id}/log", c.followLog, "attempt", "after"),
		c.open(http.MethodGet, Prefix+"runs/{run_id}/picture", c.picture),
		c.open(http.MethodGet, Prefix+"artifacts/{artifact_id}/picture", c.artifactPicture),
		c.open(http.MethodGet, Prefix+"json/selections/{selection_id}", c.selectionJSON),
		c.open(http.MethodGet, Prefix+"{path...}", func(http.ResponseWriter, *http.Request) error { return httpkit.NoSuchPath() }),
		c.open(http.MethodGet, Prefix+"json/{path...}", c.raw, rawQuery...),
		c.open(http.MethodGet, Prefix+"docs", func(w http.ResponseWriter, _ *http.Request) error { return redirect(w, Prefix+pathDocs) }),
		c.open(http.MethodGet, Prefix+pathDocs+"{$}", c.documents),
		c.open(http.MethodGet, Prefix+pathDocs+"{name}", c.documents),
	}
	for _, p := range pages {
		routes = append(routes, c.open(http.MethodGet, Prefix+p.path, func(w http.ResponseWriter, r *http.Request) error { return c.page(p, w, r) }, p.query...))
		for _, a := range p.actions {
			routes = append(routes, c.open(http.MethodPost, Prefix+a.path, func(w http.ResponseWriter, r *http.Request) error { return c.act(a, w, r) }))
		}
	}
	return routes
}

// open returns a route whose handler itself authenticates the caller. Its errors are pages.
func (c *console) open(method, pattern string, handle httpkit.Handler, query ...string) httpkit.Route {
	return httpkit.Route{
		Method: method, Pattern: pattern, Access: httpkit.ForAll, Query: query, Fail: c.fail,
		Handle: func(w http.ResponseWriter, r *http.Request) error {
			protect(w.Header())
			if method == http.MethodPost {
				if err := c.checkForm(w, r); err != nil {
					return err
				}
			}
			return handle(w, r)
		},
	}
}

// root redirects browsers to the console. Other clients get the problem for an unknown path.
func (c *console) root(w http.ResponseWriter, r *http.Request) error {
	w.Header().Add("Vary", "Accept")
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		return httpkit.NoSuchPath()
	}
	return redirect(w, home)
}

func (c *console) toHome(w http.ResponseWriter, _ *http.Request) error { return redirect(w, home) }

// redirect answers with a redirect to a path. A gateway adds the path of its stage.
func redirect(w http.ResponseWriter, path string) error {
	w.Header().Set("Location", path)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusSeeOther)
	return nil
}
