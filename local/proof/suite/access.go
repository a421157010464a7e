package suite

import (
	"net/http"

	"github.com/google/uuid"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/samples"
)

func access() []Test {
	return []Test{
		{Name: "clients without a valid token get 401", Run: clientsToken},
		{Name: "health and OpenAPI need no token", Run: openRoutes},
		{Name: "unknown path is an error of OpenAI's API too", Requires: []Capability{OwnNotFound}, Run: unknownRoutes},
	}
}

// clientsToken makes calls like a program on the server's host and like a proxy. A server with
// a token must require it of both.
func clientsToken(c *Case) {
	order := `{"pi":"` + samples.SampleRoot + `"}`
	for _, authorization := range []string{"", "Bearer wrong", "Bearer", "Basic dXNlcjpwYXNz", "Bearer " + c.Token + "x"} {
		for _, call := range []struct{ method, path, body string }{
			{http.MethodPost, "/export/mods", order},
			{http.MethodGet, "/status/none", ""},
			{http.MethodGet, "/download/none", ""},
			{http.MethodDelete, "/download/none", ""},
			{http.MethodGet, "/v1/tasks", ""},
			{http.MethodGet, "/v1/tasks/none", ""},
			{http.MethodGet, "/v1/tasks/none/events", ""},
			{http.MethodGet, "/v1/tasks/none/logs", ""},
			{http.MethodPost, "/v1/tasks/none/cancel", ""},
			{http.MethodPost, "/v1/tasks/none/retry", ""},
		} {
			for _, proxy := range []string{"", "203.0.113.7"} {
				answer := c.Call(call.method, call.path, call.body, "Authorization", authorization, "X-Forwarded-For", proxy)
				if answer.Status != http.StatusUnauthorized || answer.Header.Get("Www-Authenticate") == "" {
					c.T.Errorf("%s %s as %.8q: got %d %s, want 401 with WWW-Authenticate", call.method, call.path, authorization, answer.Status, answer.Body)
				}
			}
		}
	}
}

func openRoutes(c *Case) {
	for _, path := range []string{"/healthz", "/readyz", "/openapi.json"} {
		answer := c.Call(http.MethodGet, path, "", "Authorization", "")
		if answer.Status != http.StatusOK {
			c.T.Errorf("GET %s without a token: got %d %s, want 200", path, answer.Status, answer.Body)
		}
		correlation := answer.Header.Get("X-Correlation-Id")
		if id, err := uuid.Parse(correlation); err != nil || id.Version() != 4 {
			c.T.Errorf("GET %s: got correlation id %q, want a UUID v4", path, correlation)
		}
	}
	answer := c.Call(http.MethodGet, "/v1/tasks?limit=1", "")
	if answer.Status != http.StatusOK {
		c.T.Errorf("GET /v1/tasks with the token: got %d %s, want 200", answer.Status, answer.Body)
	}
	if id := answer.Header.Get("X-Request-Id"); id == "" || id != answer.Header.Get("X-Correlation-Id") {
		c.T.Errorf("GET /v1/tasks: got %v, want the correlation id as X-Request-Id", answer.Header)
	}
}

// unknownRoutes sends requests of OpenAI's API that Sortie does not support.
func unknownRoutes(c *Case) {
	for _, path := range []string{"/v1/moderations", "/v1/no/such/path"} {
		answer := c.Call(http.MethodPost, path, "{}")
		got := outside.Decode[struct {
			Code  string
			Error struct{ Code, Message string }
		}](c.T, answer.Body)
		if answer.Status != http.StatusNotFound || got.Code != "NOT_FOUND" || got.Error.Code != "unknown_url" || got.Error.Message == "" {
			c.T.Errorf("%s: got %d %s, want 404 in both forms", path, answer.Status, answer.Body)
		}
	}
}
