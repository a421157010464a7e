// Package streamtest writes signed events to a feed, for tests and benchmarks of its readers.
package streamtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
)

// Writer writes the stream of a tenant. It must be the stream's only writer, and is not safe
// for concurrent use.
type Writer struct {
	// Message is the message of the run in each event.
	Message string
	// Bare stores the events without DSSE envelopes.
	Bare bool

	feed   port.Feed
	tenant string
	key    events.Key
	head   port.Head
	tree   events.Tree
	clock  clock.Clock
}

// New returns a Writer for an empty stream. The clock provides the times of its events.
func New(feed port.Feed, tenant string, c clock.Clock) (*Writer, error) {
	const seed = 32
	key, err := events.NewKey(bytes.Repeat([]byte{1}, seed))
	return &Writer{Message: "ü\n<>&", feed: feed, tenant: tenant, key: key, clock: c}, err
}

// Signing implements port.EventKeys.
func (w *Writer) Signing(context.Context) (events.Key, error) { return w.key, nil }

// Published implements port.EventKeys.
func (w *Writer) Published(context.Context) ([]json.RawMessage, error) {
	document, err := w.key.JWK()
	return []json.RawMessage{document}, err
}

// Keys returns the signing key.
func (w *Writer) Keys() events.Keys { return events.Keys{w.key.ID(): w.key} }

// Cursor returns the cursor after the last event.
func (w *Writer) Cursor() stream.Cursor {
	return stream.Cursor{Epoch: w.head.Epoch, Position: w.head.Newest}
}

// Task returns the task id of the n-th event.
func Task(n int64) string { return fmt.Sprintf("job_%d", n) }

// Event returns the n-th event of the stream, with a type and the task Task(n).
func (w *Writer) Event(n int64, t eventtype.Type) events.Envelope {
	task := Task(n)
	return events.Envelope{
		SchemaVersion: events.SchemaVersion, EventID: events.ID(fmt.Sprintf("%026d", n)), EventType: t, OccurredAt: w.clock.Now(),
		IdempotencyKey: events.RunKey(t, task, 1, 1), TenantID: w.tenant, ProjectID: "main",
		Actor:    events.ActorOf("service:steps", nil),
		Job:      &events.Job{ID: task, Type: events.JobPackRun, RunID: task, Status: events.StatusRunning, Attempt: 1, Message: w.Message},
		Notifier: &events.Notifier{Channel: "orch.jobs", Delivery: events.DeliveryDSSE},
	}
}

// Add appends one event of each type, and then a checkpoint if requested.
func (w *Writer) Add(ctx context.Context, checkpoint bool, types ...eventtype.Type) error {
	b := port.Batch{After: w.head.Newest}
	for i, t := range types {
		e := w.Event(w.head.Newest+1+int64(i), t)
		payload, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("cannot write an event: %w", err)
		}
		if w.tree, err = w.tree.Add(payload); err != nil {
			return err
		}
		data := payload
		if !w.Bare {
			if data, err = events.Sign(ctx, payload, w.key); err != nil {
				return err
			}
		}
		b.Records = append(b.Records, port.FeedRecord{ID: e.EventID, At: e.OccurredAt, Data: data})
	}
	head, err := w.append(ctx, b)
	if err != nil || !checkpoint {
		return err
	}
	text, err := events.Checkpoint{Origin: events.Origin(w.tenant, head.Epoch), Tree: w.tree}.Sign(w.key)
	if err != nil {
		return err
	}
	_, err = w.append(ctx, port.Batch{After: head.Newest, Mark: []byte(text)})
	return err
}

func (w *Writer) append(ctx context.Context, b port.Batch) (port.Head, error) {
	head, err := w.feed.Append(ctx, port.EventStream(w.tenant), b)
	if err != nil {
		return head, fmt.Errorf("cannot append events: %w", err)
	}
	w.head = head
	return head, nil
}
