package console

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// eventPage shows an event with its envelope and its signature. cursor is the cursor after the
// event, or only its position.
var eventPage = page{name: "event", path: "events/{cursor}", scope: access.EventsRead, show: showEvent}

// proofPage proves that a part of the stream is complete.
var proofPage = page{name: "proof", path: "events/proof", scope: access.EventsRead, query: []string{"after", "until"}, show: showProof}

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

func showEvent(v *visit) (view, error) {
	end, err := v.endOfStream()
	if err != nil {
		return view{}, err
	}
	at, err := eventCursor(v.r.PathValue("cursor"), end)
	if err != nil {
		return view{}, err
	}
	before := stream.Cursor{Epoch: at.Epoch, Position: at.Position - 1}
	lines, _, err := v.signed(before.String(), 1)
	if err != nil && !expired(err) {
		return view{}, err
	}
	if len(lines) == 0 {
		return view{}, fault.New(fault.NotFound, "the stream does not have this event, or no longer has it")
	}
	data := eventData{eventRow: eventRowOf(at, lines[0]), After: before.String(), KeySet: keysPath, Previous: eventPath(before.String())}
	query := url.Values{"after": {before.String()}, "limit": {"1"}}
	data.Signed = address("/v1/events", query)
	data.read(lines[0])
	if before.Position == 0 {
		data.Previous = ""
	}
	if at.Epoch == end.Epoch && at.Position < end.Position {
		data.Next = eventPath(stream.Cursor{Epoch: at.Epoch, Position: at.Position + 1}.String())
	}
	data.Commands = proofCommands(v.c.URL, before.String(), at.Position)
	title := "Event " + strconv.FormatInt(at.Position, 10)
	return view{Title: title, JSON: data.Signed, Command: command("events", "list", "--after", before.String(), "--limit", "1"), Content: data.content}, nil
}

// read reads a record of the stream: a DSSE envelope, or what cannot be read.
func (d *eventData) read(record []byte) {
	_, payload, err := events.Unverified(record)
	if err != nil {
		payload = record
	}
	d.Envelope = indented(payload)
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
		command("events", "export", "events.ndjson", "--after", after),
		command("events", "verify", "events.ndjson", "--keys", server+keysPath, "--until", strconv.FormatInt(until, 10)),
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

func showProof(v *visit) (view, error) {
	query := v.r.URL.Query()
	end, err := v.endOfStream()
	if err != nil {
		return view{}, err
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
		return view{}, fault.Invalid("after", "malformed cursor, want one of an event")
	}
	to, ok := stream.ParseCursor(data.Until)
	if !ok || to.Epoch != from.Epoch || to.Position < from.Position {
		return view{}, fault.Invalid("until", "want a cursor of the same stream that is not before the start")
	}
	if to.Position-from.Position > proofLimit {
		return view{}, fault.Invalid("until", "the range has more than %d events; use the commands sortie events export and verify", proofLimit)
	}
	data.First, data.Last, data.Checked = from.Position+1, to.Position, to.Position > from.Position
	data.Commands = proofCommands(v.c.URL, data.After, to.Position)
	return view{
		Title: "Proof of completeness", JSON: address("/v1/events", url.Values{"after": {data.After}}),
		Command: command("events", "export", "events.ndjson", "--after", data.After), Content: data.content,
	}, nil
}

// endOfStream returns the cursor after the newest event.
func (v *visit) endOfStream() (stream.Cursor, error) {
	_, end, err := v.signed(stream.Latest, 1)
	return end, err
}

// signed reads the events after a cursor in their signed form, one for each position, and the
// cursor after the last one.
func (v *visit) signed(after string, limit int64) (lines [][]byte, next stream.Cursor, err error) {
	query := url.Values{"after": {after}, "limit": {strconv.FormatInt(limit, 10)}}
	response, err := v.call(http.MethodGet, "/v1/events", query, nil, http.Header{"Accept": {typeSigned}})
	if err != nil {
		return nil, next, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, next, read(response, nil)
	}
	defer func() { _ = response.Body.Close() }()
	next, _ = stream.ParseCursor(response.Header.Get("X-Next-Cursor"))
	from := bufio.NewReader(io.LimitReader(response.Body, answerLimit))
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
func (v *visit) eventsUpTo(end stream.Cursor, count int64) (rows []eventRow, oldest bool, err error) {
	at := stream.Cursor{Epoch: end.Epoch, Position: max(end.Position-count, 0)}
	oldest = at.Position == 0
	for at.Position < end.Position {
		lines, next, err := v.signed(at.String(), end.Position-at.Position)
		if expired(err) && !oldest {
			if at, err = v.startOfStream(at); err != nil {
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
func (v *visit) startOfStream(after stream.Cursor) (stream.Cursor, error) {
	lines, next, err := v.signed(stream.Earliest, 1)
	if err != nil {
		return next, err
	}
	start := stream.Cursor{Epoch: next.Epoch, Position: next.Position - int64(len(lines))}
	if start.Epoch != after.Epoch || start.Position < after.Position {
		return start, fault.New(fault.CursorExpired, "the stream does not have the events behind the cursor")
	}
	return start, nil
}

// indented returns JSON with a line for each member.
func indented(document []byte) string {
	var text bytes.Buffer
	if err := json.Indent(&text, document, "", "  "); err != nil {
		return visible(fmt.Sprintf("%q", document))
	}
	return visible(text.String())
}

// problemOf returns the refusal of the API in an error; nil without one.
func problemOf(err error) *httpkit.Problem {
	p, _ := errors.AsType[*httpkit.Problem](err)
	return p
}
