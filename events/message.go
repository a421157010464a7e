package events

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Message is an event on a bus: a CloudEvent 1.0 in its JSON format, whose data is the DSSE
// envelope of the event. Its attributes are unsigned copies of fields of the event, so that
// rules can select events. Only the event is signed. Keys.OpenMessage compares both.
type Message struct {
	SpecVersion string `json:"specversion"`
	// ID and Type are those of the event. Time is when the event occurred.
	ID   string    `json:"id"`
	Type string    `json:"type"`
	Time time.Time `json:"time"`
	// Source is the stream of the tenant: "urn:orch:tenant:" and the tenant.
	Source string `json:"source"`
	// Subject is "task/", "job/", "pool/", "model/", "quota/" or "webhook/" and the id of the
	// object that the event is about; empty for an event about the stream.
	Subject         string `json:"subject,omitempty"`
	DataContentType string `json:"datacontenttype"`
	// Sequence is the position of the event in the stream, with leading zeros so that it
	// sorts as text. Epoch is the epoch of the stream. Neither is signed.
	Sequence string `json:"sequence"`
	Epoch    string `json:"epoch"`
	// Replay is "<ordinal>/<total>" for an event of a replay, otherwise empty.
	Replay string `json:"replay,omitempty"`

	IdempotencyKey string `json:"idempotencykey"`
	CorrelationID  string `json:"correlationid,omitempty"`
	Tenant         string `json:"tenantid"`
	// Project is empty for an event about the whole tenant. TaskID and RunID are empty for an
	// event without a run.
	Project string `json:"projectid,omitempty"`
	TaskID  string `json:"taskid,omitempty"`
	RunID   string `json:"runid,omitempty"`
	// Data is the DSSE envelope: a JSON object.
	Data json.RawMessage `json:"data"`
}

const (
	cloudEvents      = "1.0"
	messageData      = "application/json" // SDKs of CloudEvents read no other type as JSON
	tenantPrefix     = "urn:orch:tenant:"
	digitsOfSequence = 20
)

// NewMessage returns the message of an event at a position of its stream. signed is the
// DSSE envelope of the event.
func NewMessage(e Envelope, epoch string, position int64, signed []byte) Message {
	m := Message{
		SpecVersion: cloudEvents, ID: e.EventID, Type: string(e.EventType), Time: e.OccurredAt, Source: tenantPrefix + e.TenantID,
		Subject: subjectOf(e), DataContentType: messageData, Sequence: fmt.Sprintf("%0*d", digitsOfSequence, position), Epoch: epoch,
		IdempotencyKey: e.IdempotencyKey, CorrelationID: e.CorrelationID, Tenant: e.TenantID, Project: e.ProjectID, Data: signed,
	}
	if e.Job != nil {
		m.TaskID, m.RunID = e.Job.ID, e.Job.RunID
	}
	if e.Notifier != nil && e.Notifier.Replay != nil {
		m.Replay = fmt.Sprintf("%d/%d", e.Notifier.Replay.Ordinal, e.Notifier.Replay.Total)
	}
	return m
}

func subjectOf(e Envelope) string {
	switch {
	case e.Job != nil:
		return "task/" + e.Job.ID
	case e.Schedule != nil:
		return "job/" + e.Schedule.DefinitionID
	case e.Policy != nil:
		return e.Policy.Resource + "/" + e.Policy.ID
	}
	return ""
}

// OpenMessage returns the event of a message and its exact bytes. The message must have a
// signed event, with the same requirements as Open, and the attributes must equal those of the
// event. Unknown attributes are ignored.
func (k Keys) OpenMessage(ctx context.Context, document []byte) (e Envelope, payload []byte, err error) {
	var got Message
	if err := errors.Join(checkNames(document), json.Unmarshal(document, &got)); err != nil {
		return Envelope{}, nil, fmt.Errorf("malformed message: %w", err)
	}
	position, err := strconv.ParseInt(got.Sequence, 10, 64)
	if err != nil {
		return Envelope{}, nil, fmt.Errorf("malformed sequence %.40q of a message, want %d digits", got.Sequence, digitsOfSequence)
	}
	if e, payload, err = k.Open(ctx, got.Data); err != nil {
		return Envelope{}, nil, err
	}
	if err := got.equal(NewMessage(e, got.Epoch, position, got.Data)); err != nil {
		return Envelope{}, nil, err
	}
	return e, payload, nil
}

// checkNames returns an error for names that readers can interpret differently: names that
// occur twice, and names with upper-case letters, which CloudEvents excludes.
func checkNames(document []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(document))
	if begin, err := decoder.Token(); err != nil || begin != json.Delim('{') {
		return errors.New("want a JSON object")
	}
	seen := map[string]bool{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		if seen[name] || name != strings.ToLower(name) {
			return fmt.Errorf("attribute %.40q occurs twice or has upper-case letters", name)
		}
		seen[name] = true
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return err
		}
	}
	return nil
}

// equal returns an error for the first attribute that differs from the wanted message.
func (m Message) equal(want Message) error {
	var values [2]map[string]any
	for i, message := range []Message{m, want} {
		document, err := json.Marshal(message)
		if err == nil {
			err = json.Unmarshal(document, &values[i])
		}
		if err != nil {
			return fmt.Errorf("cannot compare a message: %w", err)
		}
		delete(values[i], "data")
	}
	all := map[string]any{}
	maps.Copy(all, values[0])
	maps.Copy(all, values[1])
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if got, want := values[0][name], values[1][name]; got != want {
			return fmt.Errorf("attribute %s: got %.100q, want %q as in the signed event", name, text(got), text(want))
		}
	}
	return nil
}

// text returns the value of an attribute, or "" for a missing one.
func text(value any) string {
	text, _ := value.(string)
	return text
}
