package httpkit_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// holder is the token whose tickets the tests use.
var holder = access.Full("holder", "token-of-the-holder", "b", "p")

// TestTickets: a ticket replaces the token on routes for readers, and fixes parameters.
func TestTickets(t *testing.T) {
	t.Parallel()
	withTickets := func(c *httpkit.Config) {
		elsewhere(c)
		c.Tokens = httpkit.FixedTokens(access.Full("first", "first-token", "a", "p"), holder)
		c.Tickets = func(_ context.Context, text string) (port.Identity, string, error) {
			switch text {
			case "good-ticket":
				return port.Identity{Tenant: "b", Subject: holder.Subject(), Scopes: []access.Scope{access.EventsRead}}, "types=job.*&q=1", nil
			case "task-ticket":
				return port.Identity{Tenant: "b", Subject: holder.Subject(), Scopes: []access.Scope{access.EventsRead}}, "taskId=one", nil
			case "other-scope":
				return port.Identity{Tenant: "b", Subject: holder.Subject(), Scopes: []access.Scope{access.RunsRead}}, "", nil
			}
			return port.Identity{}, "", fault.New(fault.Unauthenticated, "invalid ticket")
		}
	}
	show := func(w http.ResponseWriter, r *http.Request) error {
		return httpkit.WriteBytes(w, 200, "text/plain", []byte(httpkit.CallerOf(r.Context()).Tenant+"?"+r.URL.RawQuery))
	}
	b := setup(t, show, withTickets)
	for name, row := range map[string]struct {
		path, want string
		status     int
		headers    []string
	}{
		"a ticket":             {"/readers?ticket=good-ticket", "b?q=1&types=job.%2A", 200, nil},
		"with a parameter":     {"/readers?ticket=good-ticket&more=x", "b?more=x&q=1&types=job.%2A", 200, nil},
		"the fixed value":      {"/readers?ticket=good-ticket&q=1", "b?q=1&types=job.%2A", 200, nil},
		"another value":        {"/readers?ticket=good-ticket&q=2", "", 403, nil},
		"an unknown parameter": {"/readers?ticket=good-ticket&z=2", "", 400, nil},
		"an invalid ticket":    {"/readers?ticket=bad-ticket", "", 401, nil},
		"an empty ticket":      {"/readers?ticket=", "", 401, nil},
		"two tickets":          {"/readers?ticket=good-ticket&ticket=good-ticket", "", 401, nil},
		"another scope":        {"/readers?ticket=other-scope", "", 403, nil},
		"the task":             {"/readers/one?ticket=task-ticket", "b?", 200, nil},
		"another task":         {"/readers/two?ticket=task-ticket", "", 403, nil},
		"a part of the task":   {"/readers/on?ticket=task-ticket", "", 403, nil},
		"the task by both":     {"/readers/one?ticket=task-ticket&taskId=one", "", 400, nil},
		"a filter with a task": {"/readers/one?ticket=good-ticket", "", 403, nil},
		"a task for a filter":  {"/readers?ticket=task-ticket", "", 403, nil},
		"neither":              {"/readers", "", 401, nil},
		"a token":              {"/readers?q=2", "a?q=2", 200, []string{"Authorization", "Bearer first-token"}},
		"a route for clients":  {"/thing/1?ticket=good-ticket", "", 401, nil},
		"with a token there":   {"/thing/1?ticket=good-ticket", "", 400, []string{"Authorization", "Bearer first-token"}},
	} {
		w, _ := b.call(t, http.MethodGet, row.path, row.headers...)
		if w.Code != row.status || row.status == 200 && w.Body.String() != row.want {
			t.Errorf("%s: got %d %s, want %d %s", name, w.Code, w.Body, row.status, row.want)
		}
	}
	if strings.Contains(b.logs.String(), "-ticket") || !strings.Contains(b.logs.String(), holder.Subject()) {
		t.Errorf("got the log %s, want the holder of the ticket without its text", b.logs)
	}
	if w, _ := setup(t, show, elsewhere).call(t, http.MethodGet, "/readers?ticket=good-ticket"); w.Code != http.StatusUnauthorized {
		t.Errorf("got %d from a server without tickets, want 401", w.Code)
	}
}
