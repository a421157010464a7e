package suite

import (
	"net/http"
	"strings"

	"github.com/sortie-dev/sortie/local/samples"
)

func malformed() []Test {
	return []Test{
		{Name: "invalid export request names the field", Run: badExports},
		{Name: "compressed body is refused", Requires: []Capability{OwnEncoding}, Run: badEncoding},
		{Name: "invalid query parameter is named", Run: badQueries},
		{Name: "unknown task is 404", Run: notFound},
		{Name: "unknown route is 404", Requires: []Capability{OwnNotFound}, Run: noRoute},
	}
}

// wantProblem makes a request and checks the status and the field of the returned problem.
func (c *Case) wantProblem(status int, field, method, path, body string, headers ...string) {
	c.T.Helper()
	answer := c.Call(method, path, body, headers...)
	if answer.Status != status {
		c.T.Errorf("%s %s with %.80q: got %d %s, want %d", method, path, body, answer.Status, answer.Body, status)
		return
	}
	if p := answer.Problem(c.T); p.Field != field || p.Detail == "" || p.Code == "" {
		c.T.Errorf("%s %s with %.80q: got field %q, want %q: %s", method, path, body, p.Field, field, answer.Body)
	}
}

func badExports(c *Case) {
	const path, pi = "/export/mods", `"pi":"` + samples.SampleRoot + `"`
	for body, field := range map[string]string{
		`{}`:                                 "pi",
		`{"pi":"01K9"}`:                      "pi",
		`{"pi":5}`:                           "pi",
		`{"pi":null}`:                        "pi",
		`{` + pi + `,"colour":1}`:            "colour",
		`{` + pi + `,` + pi + `}`:            "pi",
		`{` + pi + `,"options":{"depth":1}}`: "options.depth",
		`{` + pi + `,"options":{"maxDepth":"1"}}`:      "options.maxDepth",
		`{` + pi + `,"options":{"maxDepth":101}}`:      "options.maxDepth",
		`{` + pi + `,"options":[]}`:                    "options",
		`{` + pi + `,"batch_id":"a b"}`:                "batch_id",
		`{` + pi + `,"batch_id":""}`:                   "batch_id",
		`{"pi"`:                                        "",
		`[]`:                                           "",
		`{` + pi + `}{}`:                               "",
		"{\"pi\":\"\xff\"}":                            "",
		`{` + pi + `,"policy":{"timeLimitSeconds":2}}`: "policy.timeLimitSeconds",
		`{` + pi + `,"policy":{"heartbeatTimeoutSeconds":3600,"timeLimitSeconds":9}}`: "policy.heartbeatTimeoutSeconds",
		`{` + pi + `,"policy":{"retry":{"maxAttempts":0}}}`:                           "policy.retry.maxAttempts",
	} {
		c.wantProblem(http.StatusBadRequest, field, http.MethodPost, path, body)
	}
	good := `{` + pi + `}`
	c.wantProblem(http.StatusUnsupportedMediaType, "Content-Type", http.MethodPost, path, good, "Content-Type", "text/plain")
	c.wantProblem(http.StatusRequestEntityTooLarge, "", http.MethodPost, path, `{`+pi+`,"x":"`+strings.Repeat("x", 1<<20)+`"}`)
	c.wantProblem(http.StatusBadRequest, "Idempotency-Key", http.MethodPost, path, good, "Idempotency-Key", strings.Repeat("k", 256))
	c.wantProblem(http.StatusBadRequest, "dry", http.MethodPost, path+"?dry=1", good)
	c.wantProblem(http.StatusNotFound, "format", http.MethodPost, "/export/pdf", good)
}

func badEncoding(c *Case) {
	const good = `{"pi":"` + samples.SampleRoot + `"}`
	c.wantProblem(http.StatusUnsupportedMediaType, "Content-Encoding", http.MethodPost, "/export/mods", good, "Content-Encoding", "gzip")
}

func badQueries(c *Case) {
	for path, field := range map[string]string{
		"/v1/tasks?limit=0":                    "limit",
		"/v1/tasks?limit=ten":                  "limit",
		"/v1/tasks?limit=1001":                 "limit",
		"/v1/tasks?state=unknown":              "state",
		"/v1/tasks?cursor=nonsense":            "cursor",
		"/v1/tasks?sort=asc":                   "sort",
		"/v1/tasks/none?x=1":                   "x",
		"/v1/tasks/none/events?after=-1":       "after",
		"/v1/tasks/none/events?limit=0":        "limit",
		"/status/none?wait=21":                 "wait",
		"/status/none?wait=1.5":                "wait",
		"/status/none?wait=":                   "wait",
		"/status/none?watch=1":                 "watch",
		"/download/none?disposition=inline":    "disposition",
		"/healthz?verbose=1":                   "verbose",
		"/v1/tasks/none/events?after=1e3":      "after",
		"/v1/tasks?state=Completed&limit=1001": "limit",
	} {
		c.wantProblem(http.StatusBadRequest, field, http.MethodGet, path, "")
	}
}

func notFound(c *Case) {
	for _, path := range []string{
		"/status/export_mods_1_00000000", "/status/a%2Fb", "/status/%25", "/v1/tasks/none", "/v1/tasks/none/events", "/download/none",
	} {
		c.wantProblem(http.StatusNotFound, "", http.MethodGet, path, "")
	}
	c.wantProblem(http.StatusNotFound, "", http.MethodDelete, "/download/none", "")
}

func noRoute(c *Case) {
	c.wantProblem(http.StatusNotFound, "", http.MethodGet, "/v2/tasks", "")
	c.wantProblem(http.StatusNotFound, "", http.MethodGet, "/v1/replicasets", "")
	answer := c.Call(http.MethodPatch, "/v1/tasks", "")
	if answer.Status != http.StatusMethodNotAllowed || !strings.Contains(answer.Header.Get("Allow"), http.MethodGet) {
		c.T.Errorf("PATCH: got %d %v, want 405 with Allow", answer.Status, answer.Header)
	}
}
