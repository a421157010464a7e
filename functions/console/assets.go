package console

import (
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// static serves an embedded file, compressed if the browser permits it. Browsers keep it as long as
// its address is used. Pages are not compressed: their size would tell an observer whether texts of
// an address occur in the secrets of the page.
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
	w.Header().Add("Vary", "Accept-Encoding")
	if !acceptsGzip(r.Header) {
		return httpkit.WriteBytes(w, http.StatusOK, kind, f.Content)
	}
	w.Header().Set("Content-Encoding", "gzip")
	return httpkit.WriteBytes(w, http.StatusOK, kind, f.Compressed())
}

// acceptsGzip reports whether a browser names gzip, without a weight of 0.
func acceptsGzip(header http.Header) bool {
	for _, list := range header.Values("Accept-Encoding") {
		for coding := range strings.SplitSeq(list, ",") {
			name, weight, _ := strings.Cut(coding, ";")
			if strings.EqualFold(strings.TrimSpace(name), "gzip") {
				weight, weighted := strings.CutPrefix(strings.TrimSpace(weight), "q=")
				q, err := strconv.ParseFloat(weight, 64)
				return !weighted || err == nil && q > 0
			}
		}
	}
	return false
}
