package console

import (
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"sync"

	"github.com/sortie-dev/sortie"
	"github.com/sortie-dev/sortie/functions/console/docs"
	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// pathDocs is the folder of the documents, below the console. They need no session.
const pathDocs = "docs/"

var site = sync.OnceValue(func() *docs.Site { return docs.New(sortie.Documents()) })

func (c *console) documents(w http.ResponseWriter, r *http.Request) error {
	content, kind, err := site().Page(r.PathValue("name"))
	if errors.Is(err, fs.ErrNotExist) {
		return httpkit.NoSuchPath()
	}
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-cache")
	return httpkit.WriteBytes(w, http.StatusOK, kind, content)
}

// DocsRoutes returns the routes below /docs, which redirect to the documents of the console.
func DocsRoutes() []httpkit.Route {
	to := func(w http.ResponseWriter, r *http.Request) error {
		protect(w.Header())
		return redirect(w, page.Prefix+pathDocs+url.PathEscape(r.PathValue("name")))
	}
	return []httpkit.Route{
		{Method: http.MethodGet, Pattern: "/docs", Access: httpkit.ForAll, Handle: to},
		{Method: http.MethodGet, Pattern: "/docs/{$}", Access: httpkit.ForAll, Handle: to},
		{Method: http.MethodGet, Pattern: "/docs/{name}", Access: httpkit.ForAll, Handle: to},
	}
}
