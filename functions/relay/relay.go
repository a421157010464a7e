// Package relay appends the events of committed changes to the streams of their tenants,
// and publishes the streams to the bus. The table's stream invokes it with the changes of
// each run in order.
//
// Its response names the changes that could not be appended; the stream delivers
// the first of them and all later ones again, for a day. A stream of events has each
// event once. A change that cannot be decoded, that the feed refuses for good, that holds
// up others or that is nearly a day old is set aside in the outbox. A schedule and
// "sortie redrive" make the function relay what was set aside. The schedule also
// publishes what the bus has not got, and writes the last checkpoints.
package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/lambdakit"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/series"
)

// Decode decodes the new image of a stream record, in DynamoDB's JSON. There is nothing
// in the change if the record is neither a commit with events nor has notes. With an
// error it has only its tenant, in Run, if that is known.
type Decode func(image json.RawMessage) (port.Change, error)

// Batch is a batch of stream records, as Lambda delivers it.
type Batch struct {
	Records []json.RawMessage `json:"Records"`
	// Redrive requests that the changes in the outbox are relayed instead.
	Redrive bool `json:"redrive,omitempty"`
	// DetailType is that of an event of EventBridge; scheduled ones request a redrive.
	DetailType string `json:"detail-type,omitempty"`
}

// scheduled is the type of a scheduled event (EventBridge events reference).
const scheduled = "Scheduled Event"

// streamRecord has the fields of a record of the table's stream that the relay uses.
type streamRecord struct {
	Change struct {
		Number string          `json:"SequenceNumber"`
		At     float64         `json:"ApproximateCreationDateTime"` // seconds since 1970
		Image  json.RawMessage `json:"NewImage"`
	} `json:"dynamodb"`
}

// Answer lists the records to deliver again.
type Answer struct {
	Failures []Failure `json:"batchItemFailures"`
	// Redriven counts the changes that a redrive relayed, Left those that it could not
	// relay.
	Redriven int `json:"redriven,omitempty"`
	Left     int `json:"left,omitempty"`
}

// Failure is a failed record, by its sequence number.
type Failure struct {
	Number string `json:"itemIdentifier"`
}

// Webhooks queues the webhooks that have something to do. *orchestrator.Dispatch implements
// it.
type Webhooks interface {
	// DispatchTenants queues the webhooks for which the streams of tenants have new events,
	// and returns the number of tenants that failed.
	DispatchTenants(ctx context.Context, tenants []string) (failed int)
	// Sweep queues the webhooks whose time has come.
	Sweep(ctx context.Context) error
}

// Streams does what is left for the streams of events. *orchestrator.StreamSweep implements it.
type Streams interface {
	// Sweep continues where the last call was cut short.
	Sweep(ctx context.Context) error
}

// Dispatchers are several Webhooks as one: what waits for events beside webhooks has the same
// methods.
type Dispatchers []Webhooks

// DispatchTenants implements Webhooks.
func (d Dispatchers) DispatchTenants(ctx context.Context, tenants []string) (failed int) {
	for _, each := range d {
		failed += each.DispatchTenants(ctx, tenants)
	}
	return failed
}

// Sweep implements Webhooks.
func (d Dispatchers) Sweep(ctx context.Context) error {
	var failed []error
	for _, each := range d {
		failed = append(failed, each.Sweep(ctx))
	}
	return errors.Join(failed...)
}

// Handler relays a batch, or the outbox. It counts changes in the metrics
// RelayFailures, RelaySetAside, BusFailures, DispatchFailures and TracesDropped, records the
// samples of ended runs and of firings, and exports the traces: each change once, and again only if the
// process ends before its response.
func Handler(
	svc *orchestrator.Relay, bus *orchestrator.Bus, hooks Webhooks, streams Streams, outbox port.Outbox, decode Decode, traces port.Traces,
	lags series.Reader, now func() time.Time,
) lambdakit.TaskFunc {
	h := handler{svc, bus, hooks, streams, outbox, decode, traces, lags, now}
	return lambdakit.Task(func(ctx context.Context, batch Batch) (Answer, error) {
		defer h.flush(ctx)
		switch {
		case batch.DetailType == scheduled:
			return h.sweep(ctx)
		case batch.Redrive:
			return h.redrive(ctx)
		}
		return h.relay(ctx, batch.Records)
	})
}

type handler struct {
	svc     *orchestrator.Relay
	bus     *orchestrator.Bus
	hooks   Webhooks
	streams Streams
	outbox  port.Outbox
	decode  Decode
	traces  port.Traces
	lags    series.Reader
	now     func() time.Time
}

// redriveTime is the most of the time of a scheduled call that the outbox gets.
const redriveTime = 8 * time.Second

// sweep is what the schedule calls. The retries of webhooks come first: what follows may take
// all of the time of the call, and the next one continues it.
func (h handler) sweep(ctx context.Context) (Answer, error) {
	waking := h.hooks.Sweep(ctx)
	limited, cancel := context.WithTimeout(ctx, redriveTime)
	answer, err := h.redrive(limited)
	if limited.Err() != nil && ctx.Err() == nil {
		err = nil // the next call continues
	}
	cancel()
	return answer, errors.Join(waking, err, h.streams.Sweep(ctx), h.observeLags(ctx))
}

// observeLags records the lags that the sweeps have left. A lag of 0 has no sample, because
// CloudWatch bills a metric for each hour in which it is published.
func (h handler) observeLags(ctx context.Context) error {
	lags, err := h.lags(ctx)
	for _, lag := range lags {
		if lag.Value > 0 {
			lambdakit.Observe(ctx, lag)
		}
	}
	return err
}

// flushLimit is how long a call waits for the traces, after its events were published.
const flushLimit = 2 * time.Second

// flush sends the traces, because the process does not run after the call.
func (h handler) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, flushLimit)
	defer cancel()
	h.traces.Flush(ctx)
	if n := h.traces.Dropped(); n > 0 {
		lambdakit.Count(ctx, "TracesDropped", n)
	}
}

func (h handler) relay(ctx context.Context, records []json.RawMessage) (Answer, error) {
	changes := make([]orchestrator.Change, 0, len(records))
	raw := map[string]json.RawMessage{}
	for _, record := range records {
		change, err := read(record, h.decode)
		if err != nil {
			return Answer{}, lambdakit.InvalidInput{Cause: err}
		}
		changes, raw[change.ID] = append(changes, change), record
	}
	answer := Answer{Failures: []Failure{}}
	done := h.svc.Relay(ctx, changes)
	for _, id := range done.Aside {
		if err := h.outbox.SetAside(ctx, port.StoredChange{ID: id, At: h.now(), Record: raw[id]}); err != nil {
			return Answer{}, fmt.Errorf("cannot set aside a change: %w", err)
		}
	}
	for _, id := range done.Again {
		answer.Failures = append(answer.Failures, Failure{id})
	}
	if failed := h.bus.PublishAll(ctx, done.Tenants); failed > 0 {
		lambdakit.Count(ctx, "BusFailures", failed)
	}
	if failed := h.hooks.DispatchTenants(ctx, done.Tenants); failed > 0 {
		lambdakit.Count(ctx, "DispatchFailures", failed)
	}
	for _, c := range changes {
		if slices.Contains(done.Again, c.ID) {
			break // the stream delivers it and all behind it again
		}
		if !slices.Contains(done.Aside, c.ID) {
			h.record(ctx, c)
		}
	}
	if len(done.Again) > 0 {
		lambdakit.Count(ctx, "RelayFailures", len(done.Again))
	}
	if len(done.Aside) > 0 {
		lambdakit.Count(ctx, "RelaySetAside", len(done.Aside))
	}
	return answer, nil
}

// redrive relays the changes in the outbox, until ctx ends. Those that fail stay there.
func (h handler) redrive(ctx context.Context) (Answer, error) {
	drained, err := h.svc.Drain(ctx, h.outbox, func(c port.StoredChange) orchestrator.Change {
		change, err := read(c.Record, h.decode)
		if err != nil {
			change = orchestrator.Change{Err: err}
		}
		change.ID = c.ID
		return change
	}, func(changes []orchestrator.Change) {
		for _, c := range changes {
			h.record(ctx, c)
		}
	})
	return Answer{Failures: []Failure{}, Redriven: drained.Relayed, Left: drained.Left}, err
}

// read decodes a record. It returns an error for a record without a sequence
// number, which the response could not name.
func read(raw json.RawMessage, decode Decode) (orchestrator.Change, error) {
	var r streamRecord
	if err := json.Unmarshal(raw, &r); err != nil {
		return orchestrator.Change{}, fmt.Errorf("cannot decode a record: %w", err)
	}
	if r.Change.Number == "" {
		return orchestrator.Change{}, errors.New("a record without a sequence number")
	}
	change := orchestrator.Change{ID: r.Change.Number}
	if r.Change.At > 0 {
		change.At = time.Unix(int64(r.Change.At), 0)
	}
	if len(r.Change.Image) > 0 { // not a deletion
		change.Change, change.Err = decode(r.Change.Image)
	}
	return change, nil
}

// record records the samples and the trace of a change whose events are in their stream,
// and that the stream of the table does not deliver again.
func (h handler) record(ctx context.Context, c orchestrator.Change) {
	if len(c.Events) > 0 {
		lambdakit.Record(ctx, c.Events[0].At, series.OfCommit(c.Run, c.Events))
		h.traces.Committed(ctx, c.Run, c.Events)
	}
}
