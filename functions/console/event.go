package console

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// eventPage shows an event with its envelope and its signature. cursor is the cursor after the
// event, or only its position.
var eventPage = page.Page{Name: "event", Path: "events/{cursor}", Scope: access.EventsRead, Show: showEvent}

// proofPage proves that a part of the stream is complete.
var proofPage = page.Page{Name: "proof", Path: "events/proof", Scope: access.EventsRead, Query: []string{"after", "until"}, Show: showProof}

// typeSigned is the content type of events with their signatures.
const typeSigned = "application/vnd.dsse+x-ndjson"

// keysPath is the path of the published keys in the API.
const keysPath = "/.well-known/jwks.json"

// eventData is the content of the page for an event.
type eventData struct {
	eventRow
	// Envelope is the signed text of the event, indented.
	Envelope string
	Keys     []string
	// After is the cursor before the event. Signed is the path of the signed event in the API.
	After, Signed, KeySet string
	Previous, Next        string
	Commands              []string
}

func showEvent(v *page.Visit) (page.View, error) {
	end, err := endOfStream(v)
	if err != nil {
		return page.View{}, err
	}
	at, err := eventCursor(v.Request.PathValue("cursor"), end)
	if err != nil {
		return page.View{}, err
	}
	before := stream.Cursor{Epoch: at.Epoch, Position: at.Position - 1}
	lines, _, err := signedEvents(v, before.String(), 1)
	if err != nil && !page.Expired(err) {
		return page.View{}, err
	}
	if len(lines) == 0 {
		return page.View{}, fault.New(fault.NotFound, "the stream does not have this event, or no longer has it")
	}
	data := eventData{eventRow: eventRowOf(at, lines[0]), After: before.String(), KeySet: keysPath, Previous: ui.EventPath(before.String())}
	query := url.Values{"after": {before.String()}, "limit": {"1"}}
	data.Signed = ui.WithQuery("/v1/events", query)
	data.read(lines[0])
	if before.Position == 0 {
		data.Previous = ""
	}
	if at.Epoch == end.Epoch && at.Position < end.Position {
		data.Next = ui.EventPath(stream.Cursor{Epoch: at.Epoch, Position: at.Position + 1}.String())
	}
	data.Commands = proofCommands(v.Config.URL, before.String(), at.Position)
	title := "Event " + strconv.FormatInt(at.Position, 10)
	return page.View{Title: title, JSON: data.Signed, Command: ui.Command("events", "list", "--after", before.String(), "--limit", "1"), Content: data.content}, nil
}

// read reads a record of the stream: a DSSE envelope, or what cannot be read.
func (d *eventData) read(record []byte) {
	_, payload, err := events.Unverified(record)
	if err != nil {
		payload = record
	}
	d.Envelope = ui.Indented(payload)
	var signed struct {
		Signatures []struct {
			KeyID string `json:"keyid"`
		} `json:"signatures"`
	}
	if json.Unmarshal(record, &signed) == nil {
		for _, s := range signed.Signatures {
			d.Keys = append(d.Keys, s.KeyID)
		}
	}
}

// eventCursor parses the address of an event.
func eventCursor(text string, end stream.Cursor) (stream.Cursor, error) {
	at, ok := stream.ParseCursor(text)
	if position, err := strconv.ParseInt(text, 10, 64); err == nil && position > 0 {
		at, ok = stream.Cursor{Epoch: end.Epoch, Position: position}, end.Epoch != ""
	}
	if !ok || at.Epoch == "" || at.Position < 1 {
		return at, fault.New(fault.NotFound, "the stream does not have this event; an address of an event ends with its cursor or its position")
	}
	return at, nil
}

// proofCommands are the commands that verify events outside of the browser.
func proofCommands(server, after string, until int64) []string {
	return []string{
		ui.Command("events", "export", "events.ndjson", "--after", after),
		ui.Command("events", "verify", "events.ndjson", "--keys", server+keysPath, "--until", strconv.FormatInt(until, 10)),
	}
}

// proofData is the content of the page for a proof.
type proofData struct {
	After, Until string
	// Signed is the path of the signed events in the API. Last is the position of the end.
	Signed, KeySet string
	First, Last    int64
	Checked        bool
	Commands       []string
}

// proofLimit is the largest number of events that a browser verifies.
const proofLimit = 20_000

func showProof(v *page.Visit) (page.View, error) {
	query := v.Request.URL.Query()
	end, err := endOfStream(v)
	if err != nil {
		return page.View{}, err
	}
	data := proofData{After: query.Get("after"), Until: query.Get("until"), Signed: "/v1/events", KeySet: keysPath}
	if data.After == "" {
		data.After = stream.Cursor{Epoch: end.Epoch, Position: max(end.Position-1000, 0)}.String()
	}
	if data.Until == "" {
		data.Until = end.String()
	}
	from, ok := stream.ParseCursor(data.After)
	if !ok {
		return page.View{}, fault.Invalid("after", "malformed cursor, want one of an event")
	}
	to, ok := stream.ParseCursor(data.Until)
	if !ok || to.Epoch != from.Epoch || to.Position < from.Position {
		return page.View{}, fault.Invalid("until", "want a cursor of the same stream that is not before the start")
	}
	if to.Position-from.Position > proofLimit {
		return page.View{}, fault.Invalid("until", "the range has more than %d events; use the commands sortie events export and verify", proofLimit)
	}
	data.First, data.Last, data.Checked = from.Position+1, to.Position, to.Position > from.Position
	data.Commands = proofCommands(v.Config.URL, data.After, to.Position)
	return page.View{
		Title: "Proof of completeness", JSON: ui.WithQuery("/v1/events", url.Values{"after": {data.After}}),
		Command: ui.Command("events", "export", "events.ndjson", "--after", data.After), Content: data.content,
	}, nil
}

// endOfStream returns the cursor after the newest event.
func endOfStream(v *page.Visit) (stream.Cursor, error) {
	_, end, err := signedEvents(v, stream.Latest, 1)
	return end, err
}

// signedEvents reads the events after a cursor in their signed form, one for each position, and the
// cursor after the last one.
func signedEvents(v *page.Visit, after string, limit int64) (lines [][]byte, next stream.Cursor, err error) {
	query := url.Values{"after": {after}, "limit": {strconv.FormatInt(limit, 10)}}
	response, err := v.Call(http.MethodGet, "/v1/events", query, nil, http.Header{"Accept": {typeSigned}})
	if err != nil {
		return nil, next, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, next, page.Read(response, nil)
	}
	defer func() { _ = response.Body.Close() }()
	next, _ = stream.ParseCursor(response.Header.Get("X-Next-Cursor"))
	from := bufio.NewReader(io.LimitReader(response.Body, page.AnswerLimit))
	for {
		line, err := from.ReadBytes('\n')
		line = bytes.TrimSpace(line)
		if len(line) > 0 && !isCheckpoint(line) {
			lines = append(lines, line)
		}
		if errors.Is(err, io.EOF) {
			return lines, next, nil
		}
		if err != nil {
			return nil, next, fault.Wrap(err, fault.Unavailable, "the events were interrupted; retry")
		}
	}
}

// isCheckpoint reports whether a line is a checkpoint, not an event. Most lines are long events,
// and need not be decoded for that.
func isCheckpoint(line []byte) bool {
	var mark events.CheckpointLine
	return bytes.HasPrefix(line, []byte(`{"checkpoint"`)) && json.Unmarshal(line, &mark) == nil && mark.Checkpoint != ""
}

// eventsUpTo returns the events at the last count positions up to end, in order. oldest reports
// that the stream has no event before them.
func eventsUpTo(v *page.Visit, end stream.Cursor, count int64) (rows []eventRow, oldest bool, err error) {
	at := stream.Cursor{Epoch: end.Epoch, Position: max(end.Position-count, 0)}
	oldest = at.Position == 0
	for at.Position < end.Position {
		lines, next, err := signedEvents(v, at.String(), end.Position-at.Position)
		if page.Expired(err) && !oldest {
			if at, err = startOfStream(v, at); err != nil {
				return nil, false, err
			}
			oldest = true
			continue
		}
		if err != nil {
			return nil, false, err
		}
		if len(lines) == 0 {
			break
		}
		for i, line := range lines {
			rows = append(rows, eventRowOf(stream.Cursor{Epoch: next.Epoch, Position: next.Position - int64(len(lines)-1-i)}, line))
		}
		at = next
	}
	return rows, oldest, nil
}

// startOfStream returns the cursor before the oldest event, if the stream is the one of the
// cursor and its oldest event is after it.
func startOfStream(v *page.Visit, after stream.Cursor) (stream.Cursor, error) {
	lines, next, err := signedEvents(v, stream.Earliest, 1)
	if err != nil {
		return next, err
	}
	start := stream.Cursor{Epoch: next.Epoch, Position: next.Position - int64(len(lines))}
	if start.Epoch != after.Epoch || start.Position < after.Position {
		return start, fault.New(fault.CursorExpired, "the stream does not have the events behind the cursor")
	}
	return start, nil
}
