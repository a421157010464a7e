package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

//go:embed static
var staticFiles embed.FS

// file is an embedded file of the console.
type file struct {
	content []byte
	version string
}

// files are the embedded files by name.
var files = func() map[string]file {
	entries, err := staticFiles.ReadDir("static")
	if err != nil {
		panic(err) // the folder is embedded
	}
	all := map[string]file{}
	for _, e := range entries {
		content, err := staticFiles.ReadFile("static/" + e.Name())
		if err != nil {
			panic(err) // the file is embedded
		}
		sum := sha256.Sum256(content)
		all[e.Name()] = file{content, hex.EncodeToString(sum[:6])}
	}
	return all
}()

// asset returns the address of an embedded file, below the console. It changes with the content.
func asset(name string) string { return "static/" + name + "?v=" + files[name].version }

// static serves an embedded file. Browsers keep it as long as its address is used.
func (c *console) static(w http.ResponseWriter, r *http.Request) error {
	f, ok := files[r.PathValue("name")]
	if !ok {
		return httpkit.NoSuchPath()
	}
	kind := mime.TypeByExtension(path.Ext(r.PathValue("name")))
	if strings.HasSuffix(r.PathValue("name"), ".js") {
		kind = "text/javascript; charset=utf-8" // independent of the host's table
	}
	w.Header().Set("Cache-Control", "no-cache")
	if r.URL.Query().Get("v") == f.version {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	return httpkit.WriteBytes(w, http.StatusOK, kind, f.content)
}
