package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// Event is an event of a stream. Readers share it and must not change it.
type Event struct {
	Position int64
	Type     eventtype.Type
	// Plain is the envelope for readers of the stream; empty if the record is not an event.
	// Signed is the DSSE envelope, or the record if it is not an event. Signed is empty for an
	// event that is stored without a DSSE envelope, except in a page in the signed form. Both
	// are JSON on one line.
	Plain, Signed []byte

	// labels are the fields that filters use.
	labels events.Envelope
	// bare is the event if it is stored without a DSSE envelope. A page in the signed form adds
	// the envelope.
	bare []byte
}

// signed returns the event with its DSSE envelope.
func (e *Event) signed(ctx context.Context, keys port.EventKeys) (*Event, error) {
	if e.bare == nil {
		return e, nil
	}
	if keys == nil {
		return nil, fault.New(fault.Internal, "no key for an event without a signature")
	}
	own := *e
	var err error
	own.Signed, err = events.Signed(ctx, e.bare, keys.Signing)
	return &own, err
}

// routing has the fields of an envelope that a stream needs. Decoding an events.Envelope takes
// several times as long, because it also keeps unknown fields.
type routing struct {
	SchemaVersion string         `json:"schemaVersion"`
	EventType     eventtype.Type `json:"eventType"`
	ProjectID     string         `json:"projectId"`
	Job           *struct {
		ID           string            `json:"id"`
		RunID        string            `json:"runId"`
		DefinitionID string            `json:"definitionId"`
		BatchID      string            `json:"batchId"`
		ParentRunID  string            `json:"parentRunId"`
		Labels       map[string]string `json:"labels"`
	} `json:"job"`
	Schedule *struct {
		DefinitionID string `json:"definitionId"`
	} `json:"schedule"`
	Policy *struct {
		Resource string `json:"resource"`
		ID       string `json:"id"`
	} `json:"policy"`
	Notifier json.RawMessage `json:"notifier"`
}

func (r routing) labels() events.Envelope {
	l := events.Envelope{EventType: r.EventType, ProjectID: r.ProjectID}
	switch {
	case r.Job != nil:
		l.Job = &events.Job{ID: r.Job.ID, RunID: r.Job.RunID, DefinitionID: r.Job.DefinitionID, BatchID: r.Job.BatchID, ParentRunID: r.Job.ParentRunID, Labels: r.Job.Labels}
	case r.Schedule != nil:
		l.Schedule = &events.Schedule{DefinitionID: r.Schedule.DefinitionID}
	case r.Policy != nil:
		l.Policy = &events.Policy{Resource: r.Policy.Resource, ID: r.Policy.ID}
	}
	return l
}

// newEvent decodes a record of a feed. With an error, the event has only its position and the
// record's data.
func newEvent(r port.FeedRecord) (*Event, error) {
	event := &Event{Position: r.Position, Signed: r.Data}
	payload := r.Data
	if events.Bare(payload) {
		event.bare, event.Signed = payload, nil
	} else {
		var signed dsse.Envelope
		err := json.Unmarshal(r.Data, &signed)
		if err != nil {
			return event, fmt.Errorf("malformed DSSE envelope: %w", err)
		}
		if payload, err = signed.DecodeB64Payload(); err != nil {
			return event, fmt.Errorf("malformed payload: %w", err)
		}
	}
	var fields routing
	if err := json.Unmarshal(payload, &fields); err != nil {
		return event, fmt.Errorf("malformed event: %w", err)
	}
	if fields.SchemaVersion != events.SchemaVersion {
		return event, fmt.Errorf("unknown schemaVersion %q, want %s", fields.SchemaVersion, events.SchemaVersion)
	}
	plain, err := plainOf(payload, fields.Notifier)
	if err != nil {
		return event, fmt.Errorf("cannot write the event: %w", err)
	}
	event.Type, event.labels, event.Plain = fields.EventType, fields.labels(), plain
	return event, nil
}

// plainOf returns a payload for delivery without a signature, on one line.
func plainOf(payload []byte, notifier json.RawMessage) ([]byte, error) {
	if len(notifier) > 0 {
		changed, err := plainNotifier(notifier)
		if err != nil {
			return nil, err
		}
		const name = `"notifier":`
		old := append([]byte(name), notifier...)
		before, behind, _ := bytes.Cut(payload, old)
		if len(before) < len(payload) && !bytes.Contains(behind, old) {
			payload = slices.Concat(before, []byte(name), changed, behind)
		} else if payload, err = rewritten(payload, changed); err != nil {
			return nil, err
		}
	}
	if !bytes.ContainsAny(payload, "\r\n") {
		return payload, nil
	}
	var line bytes.Buffer
	err := json.Compact(&line, payload)
	return line.Bytes(), err
}

// relayed maps the notifiers that the relay writes to those for readers without a signature.
// Without it, decoding and encoding the notifier takes a fifth of the time of an event.
var relayed = func() map[string][]byte {
	known := map[string][]byte{}
	for _, t := range eventtype.All() {
		n := events.Notifier{Channel: t.Subject.Channel(), Delivery: events.DeliveryDSSE}
		stored, err := json.Marshal(n)
		if err != nil {
			panic(err) // two strings can always be encoded
		}
		n.Delivery = events.DeliveryPlain
		if known[string(stored)], err = json.Marshal(n); err != nil {
			panic(err)
		}
	}
	return known
}()

// plainNotifier returns the notifier for delivery without a signature.
func plainNotifier(notifier []byte) ([]byte, error) {
	if plain, ok := relayed[string(notifier)]; ok {
		return plain, nil
	}
	var n events.Notifier
	if err := json.Unmarshal(notifier, &n); err != nil {
		return nil, err
	}
	n.Delivery = events.DeliveryPlain
	return json.Marshal(n)
}

// rewritten returns the payload with another notifier.
func rewritten(payload, notifier []byte) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(payload, &fields); err != nil {
		return nil, err
	}
	fields["notifier"] = notifier
	return json.Marshal(fields)
}

// selected reports whether the event has an envelope and the filter selects it.
func (e *Event) selected(f events.Filter) bool { return len(e.Plain) > 0 && f.Matches(e.labels) }

// size returns the approximate memory of an event, in bytes.
func (e *Event) size() int {
	const fixed = 512
	return fixed + len(e.Plain) + len(e.Signed) + len(e.bare)
}
