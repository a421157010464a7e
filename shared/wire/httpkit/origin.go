package httpkit

import (
	"net/http"
	"slices"
	"strings"
)

// The headers that pages of other origins may send and read, in addition to the defaults of
// browsers.
var (
	sharedRequest = strings.Join([]string{"Authorization", "Content-Type", "Idempotency-Key", "If-Match", "If-None-Match", "Last-Event-ID", "Range", "Traceparent", "X-Correlation-Id"}, ", ")
	sharedAnswer  = strings.Join([]string{
		"Accept-Ranges", "Content-Disposition", "Content-Range", "ETag", "Location", "Retry-After", "X-Backoff-Ms", "X-Correlation-Id", "X-Next-Cursor", "X-Request-Id",
	}, ", ")
)

// share lets pages of the configured origins read the response (CORS). answered reports whether
// the request was a preflight, which is then complete. Browser credentials are never allowed.
func (s *server) share(w http.ResponseWriter, r *http.Request) (answered bool) {
	if len(s.config.Origins) == 0 {
		return false
	}
	header := w.Header()
	header.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if !slices.Contains(s.config.Origins, origin) {
		return false
	}
	header.Set("Access-Control-Allow-Origin", origin)
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		header.Set("Access-Control-Expose-Headers", sharedAnswer)
		return false
	}
	header.Set("Access-Control-Allow-Methods", strings.Join(s.methods, ", "))
	header.Set("Access-Control-Allow-Headers", sharedRequest)
	header.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}
