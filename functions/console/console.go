package console

import (
	"net/http"
	"strings"

	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/session"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// console serves the pages.
type console struct {
	page.Config
}

// Routes returns the routes of the console. They are not operations of the API, so they are not
// in the OpenAPI document.
func Routes(config page.Config) []httpkit.Route {
	c := &console{Config: config}
	routes := []httpkit.Route{
		{Method: http.MethodGet, Pattern: "/{$}", Access: httpkit.ForAll, Handle: c.root},
		c.open(http.MethodGet, "/console", c.toHome),
		c.open(http.MethodGet, page.Prefix+"{$}", c.toHome),
		c.open(http.MethodGet, page.Prefix+"static/{name}", c.static, "v"),
		c.open(http.MethodGet, page.PathSignIn, c.showSignIn, "next"),
		c.open(http.MethodPost, page.PathSignIn, c.signIn),
		c.open(http.MethodPost, page.Prefix+"sign-out", c.signOut),
		c.open(http.MethodGet, pathTicket, c.showTicket, "ticket"),
		c.open(http.MethodPost, pathTicket, c.useTicket),
		{Method: http.MethodPost, Pattern: page.Prefix + "tickets", Access: httpkit.ForAll, Handle: c.createTicket},
		c.open(http.MethodGet, page.Prefix+pathStream, c.stream),
		c.open(http.MethodGet, page.Prefix+"runs/{run_id}/log", c.followLog, "attempt", "after"),
		c.open(http.MethodGet, page.Prefix+"runs/{run_id}/picture", c.picture),
		c.open(http.MethodGet, page.Prefix+"artifacts/{artifact_id}/picture", c.artifactPicture),
		c.open(http.MethodGet, page.Prefix+"json/selections/{selection_id}", c.selectionJSON),
		c.open(http.MethodGet, page.Prefix+"{path...}", func(http.ResponseWriter, *http.Request) error { return httpkit.NoSuchPath() }),
		c.open(http.MethodGet, page.Prefix+"json/{path...}", c.raw, rawQuery...),
		c.open(http.MethodGet, page.Prefix+"docs", func(w http.ResponseWriter, _ *http.Request) error { return redirect(w, page.Prefix+pathDocs) }),
		c.open(http.MethodGet, page.Prefix+pathDocs+"{$}", c.documents),
		c.open(http.MethodGet, page.Prefix+pathDocs+"{name}", c.documents),
	}
	for _, p := range pages {
		routes = append(routes, c.open(http.MethodGet, page.Prefix+p.Path, func(w http.ResponseWriter, r *http.Request) error { return c.page(p, w, r) }, p.Query...))
		for _, a := range p.Actions {
			routes = append(routes, c.open(http.MethodPost, page.Prefix+a.Path, func(w http.ResponseWriter, r *http.Request) error { return c.act(a, w, r) }))
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
				if err := session.CheckForm(w, r); err != nil {
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
	return redirect(w, page.Home)
}

func (c *console) toHome(w http.ResponseWriter, _ *http.Request) error { return redirect(w, page.Home) }

// redirect answers with a redirect to a path. A gateway adds the path of its stage.
func redirect(w http.ResponseWriter, path string) error {
	w.Header().Set("Location", path)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusSeeOther)
	return nil
}
