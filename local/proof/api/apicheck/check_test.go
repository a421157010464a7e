package apicheck_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// answer returns a valid response to GET /healthz. headers alternates names and values that
// replace its own headers.
func answer(status int, body string, headers ...string) *http.Response {
	header := http.Header{}
	good := []string{"X-Correlation-Id", "c", "X-Content-Type-Options", "nosniff", "Cache-Control", "no-store", "Content-Type", "application/json"}
	for i := 0; i < len(good); i += 2 {
		header.Set(good[i], good[i+1])
	}
	for i := 0; i < len(headers); i += 2 {
		header.Del(headers[i])
		if headers[i+1] != "" {
			header.Set(headers[i], headers[i+1])
		}
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body))}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	const healthy = `{"status":"ok","version":"1"}`
	const problem = `{"type":"urn:sortie:problem:not-found","title":"x","status":404,"detail":"x","code":"NOT_FOUND","retryable":false,"correlationId":"c"}`
	for _, row := range []struct {
		name, method, path string
		answer             *http.Response
		want               string
	}{
		{"good", "GET", "/healthz", answer(200, healthy), ""},
		{"good HEAD", "HEAD", "/healthz", answer(200, ""), ""},
		{"good problem", "GET", "/v1/tasks/x", answer(404, problem, "Content-Type", "application/problem+json"), ""},
		{"good unknown path", "GET", "/x", answer(404, problem, "Content-Type", "application/problem+json"), ""},
		{"a missing member", "GET", "/healthz", answer(200, `{"status":"ok"}`), "version"},
		{"a member too many", "GET", "/healthz", answer(200, `{"status":"ok","version":"1","x":1}`), "x"},
		{"no JSON", "GET", "/healthz", answer(200, `{`), "JSON"},
		{"an unknown status", "GET", "/healthz", answer(418, healthy), "undocumented status"},
		{"a missing header", "GET", "/healthz", answer(200, healthy, "X-Correlation-Id", ""), "missing header X-Correlation-Id"},
		{"a wrong header", "GET", "/healthz", answer(200, healthy, "Cache-Control", "public"), "Cache-Control"},
		{"a header too many", "GET", "/healthz", answer(200, healthy, "X-Powered-By", "x"), "undocumented header X-Powered-By"},
		{"a wrong content type", "GET", "/healthz", answer(200, healthy, "Content-Type", "text/html"), "text/html"},
		{"a wrong length", "GET", "/healthz", answer(200, healthy, "Content-Length", "3"), "Content-Length 3"},
		{"another status in the problem", "GET", "/x", answer(403, problem, "Content-Type", "application/problem+json"), "the problem has status 404"},
		{"an unknown path that is answered", "GET", "/x", answer(200, healthy), "undocumented path"},
		{"405 without Allow", "PUT", "/healthz", answer(405, problem, "Content-Type", "application/problem+json"), "Allow"},
		{"an undocumented body", "DELETE", "/download/x", answer(204, "x"), "body"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			err := load(t).Check(httptest.NewRequest(row.method, row.path, nil), row.answer)
			if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}

func TestCheckRequest(t *testing.T) {
	t.Parallel()
	document := load(t)
	r := httptest.NewRequest(http.MethodPost, "/export/mods", nil)
	if err := document.CheckRequest(r, []byte(`{"pi":"01K9XVBAQZF9EHDRXGBEADTZYY"}`)); err != nil {
		t.Error(err)
	}
	if err := document.CheckRequest(r, []byte(`{"pi":"x"}`)); err == nil {
		t.Error("got no error for an invalid body")
	}
}
