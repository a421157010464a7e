package httpkit

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// ticketParameter is the query parameter for a ticket. It is for clients that cannot send a
// header: EventSource and WebSocket in browsers.
const ticketParameter = "ticket"

// A ticket for a task (queryTask) also opens the stream of the task in the path (pathTask).
const pathTask, queryTask = "task_id", "taskId"

// TicketSource opens a ticket: it returns the identity that the ticket authorizes, and the
// query parameters that it fixes. The error is returned to the client.
type TicketSource func(ctx context.Context, text string) (who port.Identity, query string, err error)

// openTicket authenticates a request by the ticket in its query. It replaces the ticket by the
// parameters that it fixes. found is false for a request without a ticket.
func (s *server) openTicket(t Route, r *http.Request) (who port.Identity, found bool, err error) {
	sent := r.URL.Query()
	if !sent.Has(ticketParameter) {
		return port.Identity{}, false, nil
	}
	if s.config.Tickets == nil || len(sent[ticketParameter]) > 1 {
		return port.Identity{}, true, fault.New(fault.Unauthenticated, "the server takes no tickets, or got more than one")
	}
	who, query, err := s.config.Tickets(r.Context(), sent.Get(ticketParameter))
	if err != nil {
		return port.Identity{}, true, err
	}
	fixed, err := url.ParseQuery(query)
	if err != nil {
		return port.Identity{}, true, fmt.Errorf("cannot read the query of a ticket: %w", err)
	}
	sent.Del(ticketParameter)
	for name, values := range fixed {
		if task := r.PathValue(pathTask); name == queryTask && task != "" {
			if task != values[0] {
				return port.Identity{}, true, fault.New(fault.Forbidden, "the ticket is for the task %s", values[0])
			}
			continue
		}
		if !slices.Contains(t.Query, name) {
			return port.Identity{}, true, fault.New(fault.Forbidden, "the ticket is for %s=%s, which this stream cannot select", name, values[0])
		}
		if sent.Has(name) && sent.Get(name) != values[0] {
			return port.Identity{}, true, fault.New(fault.Forbidden, "the ticket is for %s=%s", name, values[0])
		}
		sent[name] = values
	}
	narrowed := *r.URL
	narrowed.RawQuery = sent.Encode()
	r.URL = &narrowed
	return who, true, nil
}
