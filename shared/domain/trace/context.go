// Package trace derives the traces of runs: ids, W3C trace contexts and the spans of a commit.
// All of them are pure functions of the record and its events. Every process therefore derives
// the same ids, and a commit that is exported again has the same spans.
package trace

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

// ID is the id of a trace, SpanID the id of a span. The zero value is not a valid id.
type (
	ID     [16]byte
	SpanID [8]byte
)

// String returns the id in hexadecimal.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// String returns the id in hexadecimal.
func (id SpanID) String() string { return hex.EncodeToString(id[:]) }

// Context is the content of a traceparent of W3C Trace Context: it identifies the parent of
// further spans. The zero value means that there is no context.
type Context struct {
	Trace ID
	Span  SpanID
	// Sampled is the sampled flag: the caller may have recorded the span.
	Sampled bool
}

// The known flag of a traceparent, and the length of a traceparent of version 00.
const (
	flagSampled   = 0x01
	contextLength = 55
)

// Parse parses a traceparent. It parses later versions like version 00. ok is false for a
// malformed traceparent, which W3C Trace Context requires to ignore.
func Parse(text string) (c Context, ok bool) {
	if len(text) < contextLength || text[2] != '-' || text[35] != '-' || text[52] != '-' {
		return c, false
	}
	var version, flags [1]byte
	for _, field := range []struct {
		to   []byte
		text string
	}{{version[:], text[:2]}, {c.Trace[:], text[3:35]}, {c.Span[:], text[36:52]}, {flags[:], text[53:55]}} {
		if n, err := hex.Decode(field.to, []byte(field.text)); err != nil || n != len(field.to) || hex.EncodeToString(field.to) != field.text {
			return Context{}, false
		}
	}
	longer := len(text) > contextLength
	if version[0] == 0xff || version[0] == 0 && longer || longer && text[contextLength] != '-' || c.Trace == (ID{}) || c.Span == (SpanID{}) {
		return Context{}, false
	}
	c.Sampled = flags[0]&flagSampled != 0
	return c, true
}

// String returns the context as a traceparent of version 00; empty if there is no context.
func (c Context) String() string {
	if c.Trace == (ID{}) {
		return ""
	}
	flags := 0
	if c.Sampled {
		flags = flagSampled
	}
	return fmt.Sprintf("00-%s-%s-%02x", c.Trace, c.Span, flags)
}

// Client returns the trace context that the client sent when it created the run. ok is false if
// it sent no valid traceparent.
func Client(r run.Run) (c Context, ok bool) { return Parse(r.TraceParent) }

// Of returns the context of the run's span. The trace is the client's. Without a client's
// context, the trace id is a hash of tenant and run id, and Sampled is true.
func Of(r run.Run) Context {
	c, ok := Client(r)
	if !ok {
		c = Context{Sampled: true}
		fill(c.Trace[:], r, "trace", 0)
	}
	c.Span = spanID(r, "run", 0)
	return c
}

// OfAttempt returns the context of the run's current attempt. Its worker receives this context.
func OfAttempt(r run.Run) Context {
	c := Of(r)
	c.Span = spanID(r, "attempt", r.Attempt.Number)
	return c
}

// OfEngine returns the context of the request to an engine in the run's current attempt. The
// engine receives this context.
func OfEngine(r run.Run) Context {
	c := Of(r)
	c.Span = spanID(r, NameEngine, r.Attempt.Number)
	return c
}

// spanID returns the span id of a part of the run, such as ("attempt", 2).
func spanID(r run.Run, part string, number int) (id SpanID) {
	fill(id[:], r, part, number)
	return id
}

// fill fills id with a hash of tenant, run id, part and number. The result is never zero.
func fill(id []byte, r run.Run, part string, number int) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %s %d", r.Tenant, r.ID, part, number))
	copy(id, sum[:])
	if bytes.Equal(id, make([]byte, len(id))) {
		id[len(id)-1] = 1
	}
}
