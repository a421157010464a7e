package httpkit_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

const page = "https://pages.example.org"

func shared(c *httpkit.Config) {
	withTokens(c)
	c.Origins, c.Loopback = []string{page}, false
}

func TestConfiguredOriginMayReadResponses(t *testing.T) {
	t.Parallel()
	b := setup(t, ok, shared)
	for path, status := range map[string]int{"/thing/1": http.StatusOK, "/nothing": http.StatusNotFound} {
		answer, _ := b.call(t, http.MethodGet, path, "Origin", page, "Authorization", "Bearer first-token")
		header := answer.Header()
		if answer.Code != status || header.Get("Access-Control-Allow-Origin") != page || header.Get("Vary") != "Origin" ||
			!strings.Contains(header.Get("Access-Control-Expose-Headers"), "X-Correlation-Id") {
			t.Errorf("%s: got %d with %v, want %d with the CORS headers", path, answer.Code, header, status)
		}
	}
}

func TestPreflight(t *testing.T) {
	t.Parallel()
	b := setup(t, ok, shared)
	answer, _ := b.call(t, http.MethodOptions, "/thing/1", "Origin", page, "Access-Control-Request-Method", "POST")
	header := answer.Header()
	if answer.Code != http.StatusNoContent || header.Get("Access-Control-Allow-Origin") != page ||
		header.Get("Access-Control-Allow-Methods") != "GET, HEAD, POST" ||
		!strings.Contains(header.Get("Access-Control-Allow-Headers"), "Authorization") {
		t.Errorf("got %d with %v, want 204 with the CORS headers", answer.Code, header)
	}
	if header.Get("Access-Control-Allow-Credentials") != "" {
		t.Error("got Access-Control-Allow-Credentials, want none")
	}
}

func TestOtherOriginsGetNoCORSHeaders(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]bench{"another origin": setup(t, ok, shared), "none is configured": setup(t, ok)} {
		for _, method := range []string{http.MethodGet, http.MethodOptions} {
			answer, _ := b.call(t, method, "/thing/1", "Origin", "https://evil.example", "Access-Control-Request-Method", "GET", "Authorization", "Bearer first-token")
			for header := range answer.Header() {
				if strings.HasPrefix(header, "Access-Control-") {
					t.Errorf("%s, %s: got the header %s, want none", name, method, header)
				}
			}
		}
	}
}
