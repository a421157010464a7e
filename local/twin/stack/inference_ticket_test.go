package stack_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestTicketReadsTheStreamOfATask reads token streams like a browser's EventSource: with a
// ticket in the URL and no token. A reader that has the last event gets 204, after which an
// EventSource does not reconnect.
func TestTicketReadsTheStreamOfATask(t *testing.T) {
	t.Parallel()
	g := start(t, served{Engines: mocked})
	task, other := g.ask(3), g.ask(3)
	lastState(g, task)
	lastState(g, other)
	ticket := func(filter string) string {
		answer := g.Call(http.MethodPost, "/v1/events/tickets", filter)
		if answer.Status != http.StatusCreated {
			t.Fatalf("%s: got %d %s, want a ticket", filter, answer.Status, answer.Body)
		}
		return outside.Decode[contract.Ticket](t, answer.Body).Ticket
	}
	of := ticket(fmt.Sprintf(`{"taskId":%q}`, task))
	last := ""
	for _, row := range []struct {
		path, ticket, last string
		status             int
	}{
		{task, of, "", http.StatusOK},
		{task, ticket(""), "", http.StatusOK},
		{task, of, "last", http.StatusNoContent},
		{other, of, "", http.StatusForbidden},
		{task, ticket(`{"types":["job.*"]}`), "", http.StatusForbidden},
		{task, "x", "", http.StatusUnauthorized},
		{task, "", "", http.StatusUnauthorized},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.Client.URL+"/v1/tasks/"+row.path+"/stream?ticket="+url.QueryEscape(row.ticket), nil)
		if err != nil {
			t.Fatal(err)
		}
		if row.last != "" {
			request.Header.Set("Last-Event-ID", last)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != row.status {
			t.Errorf("%+v: got %d %s (%v), want %d", row, answer.StatusCode, text, err, row.status)
		}
		if row.status == http.StatusOK {
			_, end, found := strings.Cut(string(text), "\nevent: end\n")
			before, _, _ := strings.Cut(string(text), "\nevent: end\n")
			if last = before[strings.LastIndex(before, "id: ")+len("id: "):]; !found || end == "" || last == "" {
				t.Errorf("got %s, want a stream with its end", text)
			}
		}
	}
	for _, path := range []string{"/v1/tasks", "/status/" + task, "/v1/tasks/" + task + "/events"} {
		answer, err := http.Get(g.Client.URL + path + "?ticket=" + url.QueryEscape(of)) //nolint:noctx // of this test's server
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusUnauthorized && answer.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: got %d with a ticket, want it refused", path, answer.StatusCode)
		}
	}
}
