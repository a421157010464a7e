package console

import (
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// static serves an embedded file. Browsers keep it as long as its address is used.
func (c *console) static(w http.ResponseWriter, r *http.Request) error {
	f, ok := ui.Files[r.PathValue("name")]
	if !ok {
		return httpkit.NoSuchPath()
	}
	kind := mime.TypeByExtension(path.Ext(r.PathValue("name")))
	if strings.HasSuffix(r.PathValue("name"), ".js") {
		kind = "text/javascript; charset=utf-8" // independent of the host's table
	}
	w.Header().Set("Cache-Control", "no-cache")
	if r.URL.Query().Get("v") == f.Version {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	return httpkit.WriteBytes(w, http.StatusOK, kind, f.Content)
}
