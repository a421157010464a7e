// Package events serves /v1/events: pages of a tenant's event stream, and tickets for
// readers that cannot send a header.
package events

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// Page lengths.
const (
	pageLimit   = 1000
	pageDefault = 100
)

// The content types of a page.
const (
	typeLines  = "application/x-ndjson"
	typeSigned = "application/vnd.dsse+x-ndjson"
)

// headerNext has the cursor of the next page.
const headerNext = "X-Next-Cursor"

// Routes returns the routes of pages and tickets.
func Routes(streams *stream.Streams, tokens *grants.Tokens) []httpkit.Route {
	return []httpkit.Route{
		{
			Method: http.MethodGet, Pattern: "/v1/events", Access: httpkit.ForClients, Scope: access.EventsRead,
			Query:  append(api.FilterParameters(), "after", "limit"),
			Handle: func(w http.ResponseWriter, r *http.Request) error { return page(streams, w, r) },
		},
		{
			Method: http.MethodPost, Pattern: "/v1/events/tickets", Access: httpkit.ForClients, Scope: access.EventsRead,
			Handle: func(w http.ResponseWriter, r *http.Request) error { return ticket(tokens, w, r) },
		},
	}
}

func page(streams *stream.Streams, w http.ResponseWriter, r *http.Request) error {
	kind, err := httpkit.Accepted(r, httpkit.TypeJSON, typeLines, typeSigned)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	q := stream.PageQuery{After: query.Get("after"), Signed: kind == typeSigned}
	if !query.Has("after") {
		q.After = stream.Earliest
	}
	if q.Limit, err = httpkit.IntQuery(r, "limit", 1, pageLimit, pageDefault); err != nil {
		return err
	}
	if q.Filter, err = api.QueryFilter(query); err != nil {
		return err
	}
	p, err := streams.Page(r.Context(), httpkit.CallerOf(r.Context()), q)
	if err != nil {
		return fmt.Errorf("cannot read the events: %w", err)
	}
	w.Header().Set(headerNext, p.Next.String())
	w.Header().Set("Vary", "Accept")
	switch kind {
	case typeLines:
		return httpkit.WriteBytes(w, http.StatusOK, kind, lines(p.Events))
	case typeSigned:
		text, err := signedLines(p)
		if err != nil {
			return err
		}
		return httpkit.WriteBytes(w, http.StatusOK, kind, text)
	}
	found := contract.EventPage{Events: make([]json.RawMessage, len(p.Events)), Next: p.Next.String()}
	for i, e := range p.Events {
		found.Events[i] = e.Plain
	}
	return httpkit.WriteJSON(w, http.StatusOK, found)
}

// lines returns envelopes, one per line.
func lines(found []*stream.Event) []byte {
	var text bytes.Buffer
	for _, e := range found {
		text.Write(e.Plain)
		text.WriteByte('\n')
	}
	return text.Bytes()
}

// signedLines returns DSSE envelopes and checkpoints, one per line, in the format of
// events.Verify. A checkpoint follows the event at its position.
func signedLines(p stream.Page) ([]byte, error) {
	var text bytes.Buffer
	rest := p.Checkpoints
	checkpoints := func(before int64) error {
		for ; len(rest) > 0 && rest[0].Position < before; rest = rest[1:] {
			line, err := json.Marshal(events.CheckpointLine{Checkpoint: string(rest[0].Data)})
			if err != nil {
				return fmt.Errorf("cannot write a checkpoint: %w", err)
			}
			text.Write(append(line, '\n'))
		}
		return nil
	}
	for _, e := range p.Events {
		if err := checkpoints(e.Position); err != nil {
			return nil, err
		}
		text.Write(e.Signed)
		text.WriteByte('\n')
	}
	err := checkpoints(p.Next.Position + 1)
	return text.Bytes(), err
}

func ticket(tokens *grants.Tokens, w http.ResponseWriter, r *http.Request) error {
	var body contract.EventFilter
	if err := httpkit.DecodeOptionalJSON(w, r, &body); err != nil {
		return err
	}
	f, err := api.BodyFilter(body)
	if err != nil {
		return err
	}
	ctx := r.Context()
	text, expires, err := tokens.Ticket(ctx, httpkit.CallerOf(ctx), api.FilterQuery(f).Encode())
	if err != nil {
		return fmt.Errorf("cannot sign the ticket: %w", err)
	}
	return httpkit.WriteJSON(w, http.StatusCreated, contract.Ticket{Ticket: text, ExpiresAt: expires})
}
