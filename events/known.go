package events

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// names contains the names of the fields of an object. inner has the names of those objects in
// it that keep unknown fields.
type names struct {
	known map[string]bool
	inner map[string]*names
}

// namesOf returns the fields of a struct.
func namesOf[T any](inner map[string]*names) *names {
	n := &names{known: map[string]bool{}, inner: inner}
	for field := range reflect.TypeFor[T]().Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "-" {
			n.known[name] = true
		}
	}
	return n
}

var envelopeNames = namesOf[plainEnvelope](map[string]*names{
	"actor": namesOf[plainActor](nil), "job": namesOf[plainJob](nil), "notifier": namesOf[plainNotifier](nil),
})

// decodePlain decodes an event whose parts have no unknown fields, and reports whether it did.
// That takes a third of the time, because each part with unknown fields is read several times.
func (e *Envelope) decodePlain(document []byte) bool {
	if e.Job != nil || e.Notifier != nil || !e.plain() {
		return false // their fields would remain
	}
	if end, known := envelopeNames.scan(document, 0); !known || len(bytes.TrimSpace(document[end:])) > 0 {
		return false
	}
	plain := plainOf(e)
	if json.Unmarshal(document, plain) != nil {
		return false
	}
	*e = Envelope{
		SchemaVersion: plain.SchemaVersion, EventID: plain.EventID, EventType: plain.EventType, OccurredAt: plain.OccurredAt,
		IdempotencyKey: plain.IdempotencyKey, CorrelationID: plain.CorrelationID, TenantID: plain.TenantID, ProjectID: plain.ProjectID,
		Actor: Actor(plain.Actor), Job: (*Job)(plain.Job), Schedule: plain.Schedule, Policy: plain.Policy, Log: plain.Log,
		Metrics: plain.Metrics, Notifier: (*Notifier)(plain.Notifier), Truncated: plain.Truncated,
	}
	return true
}

// scan reports whether the object at a position has only known fields, and returns its end. It
// returns false for malformed JSON, and for names with escapes.
func (n *names) scan(document []byte, at int) (end int, known bool) {
	if at = skipSpace(document, at); at >= len(document) || document[at] != '{' {
		return at, false
	}
	for at = skipSpace(document, at+1); at < len(document) && document[at] == '"'; {
		begin := at + 1
		size := bytes.IndexAny(document[begin:], `"\`)
		if size < 0 || document[begin+size] != '"' {
			return at, false
		}
		name := document[begin : begin+size]
		if !n.known[string(name)] {
			return at, false
		}
		if at = skipSpace(document, begin+size+1); at >= len(document) || document[at] != ':' {
			return at, false
		}
		at = skipSpace(document, at+1)
		inner := n.inner[string(name)]
		if inner != nil && at < len(document) && document[at] == '{' {
			if at, known = inner.scan(document, at); !known {
				return at, false
			}
		} else {
			at = skipValue(document, at)
		}
		if at = skipSpace(document, at); at < len(document) && document[at] == ',' {
			at = skipSpace(document, at+1)
		}
	}
	return at + 1, at < len(document) && document[at] == '}'
}

func skipSpace(document []byte, at int) int {
	for at < len(document) && (document[at] == ' ' || document[at] == '\n' || document[at] == '\t' || document[at] == '\r') {
		at++
	}
	return at
}

// skipValue returns the end of the value at a position: the end of a string or of brackets, or
// otherwise the position before the next field.
func skipValue(document []byte, at int) int {
	for depth := 0; at < len(document); at++ {
		switch document[at] {
		case '"':
			for at++; at < len(document) && document[at] != '"'; at++ {
				if document[at] == '\\' {
					at++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return at
			}
		case ',':
			if depth == 0 {
				return at
			}
		}
	}
	return at
}
