// Package trace has the traces of runs: their ids, the W3C trace context and the spans of
// a commit. All of it is a function of the record and its events, so that every process,
// and a commit that is exported again, has the same ids and the same spans.
package trace

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/sortie-dev/sortie/shared/run"
)

// ID is the id of a trace, SpanID that of a span. A zero value is no id.
type (
	ID     [16]byte
	SpanID [8]byte
)

// String returns the id in hexadecimal.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// String returns the id in hexadecimal.
func (id SpanID) String() string { return hex.EncodeToString(id[:]) }

// Context is a span as its children know it: the traceparent of W3C Trace Context. Its
// zero value is no context.
type Context struct {
	Trace ID
	Span  SpanID
	// Sampled: the caller may have recorded the span.
	Sampled bool
}

// The flags of a traceparent that are known, and the length of version 00.
const (
	flagSampled   = 0x01
	contextLength = 55
)

// Parse parses a traceparent. A later version is read like version 00. ok is false for a
// malformed one, which the recommendation ignores.
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

// String returns the context as a traceparent of version 00; empty for no context.
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

// Client returns the context of the request that created the run; ok is false without one.
func Client(r run.Run) (c Context, ok bool) { return Parse(r.TraceParent) }

// Of returns the context of the run's own span. The trace is the client's. Without one it
// follows from tenant and run id, and is sampled.
func Of(r run.Run) Context {
	c, ok := Client(r)
	if !ok {
		c = Context{Sampled: true}
		fill(c.Trace[:], r, "trace", 0)
	}
	c.Span = spanID(r, "run", 0)
	return c
}

// OfAttempt returns the context of the run's present attempt, which its worker gets.
func OfAttempt(r run.Run) Context {
	c := Of(r)
	c.Span = spanID(r, "attempt", r.Attempt.Number)
	return c
}

// OfEngine returns the context of the request to an engine in the run's present attempt,
// which the engine gets.
func OfEngine(r run.Run) Context {
	c := Of(r)
	c.Span = spanID(r, NameEngine, r.Attempt.Number)
	return c
}

// spanID returns the id of a part of the run, such as its second attempt.
func spanID(r run.Run, part string, number int) (id SpanID) {
	fill(id[:], r, part, number)
	return id
}

// fill fills an id with a hash of the run and a part of it. An id is never zero.
func fill(id []byte, r run.Run, part string, number int) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %s %d", r.Tenant, r.ID, part, number))
	copy(id, sum[:])
	if bytes.Equal(id, make([]byte, len(id))) {
		id[len(id)-1] = 1
	}
}
