package console

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/functions/console/page"
)

// TestDocumentsAreServed reads documents without a session, and tries to leave the site.
func TestDocumentsAreServed(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	for _, r := range append(Routes(page.Config{}), DocsRoutes()...) {
		if r.Method == http.MethodGet && (strings.Contains(r.Pattern, "/docs") || strings.HasSuffix(r.Pattern, "{path...}")) {
			mux.HandleFunc("GET "+r.Pattern, func(w http.ResponseWriter, req *http.Request) {
				if err := r.Handle(w, req); err != nil {
					w.WriteHeader(http.StatusNotFound)
				}
			})
		}
	}
	for path, row := range map[string]struct {
		status     int
		kind, says string
	}{
		"/console/docs/":                               {200, "text/html; charset=utf-8", "<h1 id=\"sortie\">"},
		"/console/docs/shared-domain-job.html":         {200, "text/html; charset=utf-8", "aria-current"},
		"/console/docs/api.html":                       {200, "text/html; charset=utf-8", "listevents"},
		"/console/docs/style.css":                      {200, "text/css; charset=utf-8", "light-dark"},
		"/console/docs/functions-console-console.webp": {200, "image/webp", ""},
		"/console/docs/local-sortie-terminal.svg":      {200, "image/svg+xml", "<svg"},
		"/console/docs":                                {303, "", "/console/docs/"},
		"/docs":                                        {303, "", "/console/docs/"},
		"/docs/":                                       {303, "", "/console/docs/"},
		"/docs/api.html":                               {303, "", "/console/docs/api.html"},
		"/docs/%2F%2Fevil.example":                     {303, "", "/console/docs/%2F%2Fevil.example"},
		"/docs/%0d%0aX-Evil:1":                         {303, "", "/console/docs/%0D%0AX-Evil:1"},
		"/console/docs/..%2f..%2fgo.mod":               {404, "", ""},
		"/console/docs/README.md":                      {404, "", ""},
		"/console/docs/%2Fetc%2Fpasswd":                {404, "", ""},
	} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		got := w.Body.String() + w.Header().Get("Location")
		if w.Code != row.status || !strings.Contains(got, row.says) || row.kind != "" && w.Header().Get("Content-Type") != row.kind {
			t.Errorf("%s: got %d, %s, %.200s, want %d and %q", path, w.Code, w.Header().Get("Content-Type"), got, row.status, row.says)
		}
		if row.status != http.StatusNotFound && w.Header().Get("Content-Security-Policy") != policy {
			t.Errorf("%s: got the policy %q, want that of the console", path, w.Header().Get("Content-Security-Policy"))
		}
	}
}
