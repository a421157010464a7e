// Package relay appends the events of committed changes to the streams of their tenants,
// and publishes the streams to the bus. The table's stream invokes it with the changes of
// each run in order.
//
// Its response names the changes that could not be appended. The stream delivers the first of
// them and all later ones again, for a day. A stream of events has each event once. A change is
// set aside in the outbox if it cannot be decoded, if the feed refuses it permanently, if it
// blocks others, or if it is nearly a day old. A schedule and "sortie redrive" make the
// function relay the outbox. The schedule also publishes events that the bus has not received,
// and writes the last checkpoints.
package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
)

// Decode decodes the new image of a stream record, in DynamoDB's JSON. The change is empty if
// the record is neither a commit with events nor has notes. With an error, the change has only
// its tenant, in Run, if that is known.
type Decode func(image json.RawMessage) (port.Change, error)

// Batch is a batch of stream records, as Lambda delivers it.
type Batch struct {
	Records []json.RawMessage `json:"Records"`
	// Redrive requests that the changes in the outbox are relayed instead.
	Redrive bool `json:"redrive,omitempty"`
	// DetailType is the type of an EventBridge event. Scheduled events request a redrive.
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
	// Redriven counts the changes that a redrive relayed. Left counts those that it could not
	// relay.
	Redriven int `json:"redriven,omitempty"`
	Left     int `json:"left,omitempty"`
}

// Failure is a failed record, by its sequence number.
type Failure struct {
	Number string `json:"itemIdentifier"`
}

// Webhooks queues the webhooks that are due. *delivery.Dispatch implements it.
type Webhooks interface {
	// DispatchTenants queues the webhooks for new events in the streams of tenants. It returns
	// the number of tenants that failed.
	DispatchTenants(ctx context.Context, tenants []string) (failed int)
	// Sweep queues the webhooks whose time has come.
	Sweep(ctx context.Context) error
}

// Streams completes unfinished work on the streams of events. *delivery.StreamSweep
// implements it.
type Streams interface {
	// Sweep continues where the last call was interrupted.
	Sweep(ctx context.Context) error
}

// Dispatchers combines several Webhooks. Other receivers of events have the same methods.
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

// Handler relays a batch, or the outbox. It counts changes in the metrics RelayFailures,
// RelaySetAside, BusFailures, DispatchFailures and TracesDropped. It records the samples of
// ended runs, by labels too, and of firings, and exports the traces. It does so once for each change, and again
// only if the process ends before its response.
func Handler(
	svc *delivery.Relay, bus *delivery.Bus, hooks Webhooks, streams Streams, outbox port.Outbox, decode Decode, traces port.Traces,
	lags series.Reader, labels *series.Labels, now func() time.Time,
) lambdakit.TaskFunc {
	h := handler{svc, bus, hooks, streams, outbox, decode, traces, lags, labels, now}
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
	svc     *delivery.Relay
	bus     *delivery.Bus
	hooks   Webhooks
	streams Streams
	outbox  port.Outbox
	decode  Decode
	traces  port.Traces
	lags    series.Reader
	labels  *series.Labels
	now     func() time.Time
}

// redriveTime limits the time of the outbox in a scheduled call.
const redriveTime = 8 * time.Second

// sweep handles a scheduled call. It starts with the retries of webhooks, because the rest may
// take all the time of the call. The next call continues the rest.
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

// observeLags records the lags after the sweeps. A lag of 0 has no sample, because CloudWatch
// bills a metric for each hour in which it is published.
func (h handler) observeLags(ctx context.Context) error {
	lags, err := h.lags(ctx)
	for _, lag := range lags {
		if lag.Value > 0 {
			lambdakit.Observe(ctx, lag)
		}
	}
	return err
}

// flushLimit is how long a call waits for the export of the traces, after its events were
// published.
const flushLimit = 2 * time.Second

// flush sends the traces, because the process is suspended after the call.
func (h handler) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, flushLimit)
	defer cancel()
	h.traces.Flush(ctx)
	if n := h.traces.Dropped(); n > 0 {
		lambdakit.Count(ctx, "TracesDropped", n)
	}
}

func (h handler) relay(ctx context.Context, records []json.RawMessage) (Answer, error) {
	changes := make([]delivery.Change, 0, len(records))
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
	for _, id := range done.SetAside {
		if err := h.outbox.SetAside(ctx, port.StoredChange{ID: id, At: h.now(), Record: raw[id]}); err != nil {
			return Answer{}, fmt.Errorf("cannot set aside a change: %w", err)
		}
	}
	for _, id := range done.Redeliver {
		answer.Failures = append(answer.Failures, Failure{id})
	}
	if failed := h.bus.PublishAll(ctx, done.Tenants); failed > 0 {
		lambdakit.Count(ctx, "BusFailures", failed)
	}
	if failed := h.hooks.DispatchTenants(ctx, done.Tenants); failed > 0 {
		lambdakit.Count(ctx, "DispatchFailures", failed)
	}
	for _, c := range changes {
		if slices.Contains(done.Redeliver, c.ID) {
			break // the stream delivers it and all later ones again
		}
		if !slices.Contains(done.SetAside, c.ID) {
			h.record(ctx, c)
		}
	}
	if len(done.Redeliver) > 0 {
		lambdakit.Count(ctx, "RelayFailures", len(done.Redeliver))
	}
	if len(done.SetAside) > 0 {
		lambdakit.Count(ctx, "RelaySetAside", len(done.SetAside))
	}
	return answer, nil
}

// redrive relays the changes in the outbox until ctx ends. Failed changes remain in the outbox.
func (h handler) redrive(ctx context.Context) (Answer, error) {
	drained, err := h.svc.Drain(ctx, h.outbox, func(c port.StoredChange) delivery.Change {
		change, err := read(c.Record, h.decode)
		if err != nil {
			change = delivery.Change{Err: err}
		}
		change.ID = c.ID
		return change
	}, func(changes []delivery.Change) {
		for _, c := range changes {
			h.record(ctx, c)
		}
	})
	return Answer{Failures: []Failure{}, Redriven: drained.Relayed, Left: drained.Left}, err
}

// read decodes a record. It returns an error for a record without a sequence number, because
// the response could not name it.
func read(raw json.RawMessage, decode Decode) (delivery.Change, error) {
	var r streamRecord
	if err := json.Unmarshal(raw, &r); err != nil {
		return delivery.Change{}, fmt.Errorf("cannot decode a record: %w", err)
	}
	if r.Change.Number == "" {
		return delivery.Change{}, errors.New("a record without a sequence number")
	}
	change := delivery.Change{ID: r.Change.Number}
	if r.Change.At > 0 {
		change.At = time.Unix(int64(r.Change.At), 0)
	}
	if len(r.Change.Image) > 0 { // not a deletion
		change.Change, change.Err = decode(r.Change.Image)
	}
	return change, nil
}

// record records the samples and the trace of a change whose events are in their stream. The
// stream of the table must not deliver it again.
func (h handler) record(ctx context.Context, c delivery.Change) {
	if len(c.Events) > 0 {
		lambdakit.Record(ctx, c.Events[0].At, append(series.OfCommit(c.Run, c.Events), h.labels.OfCommit(c.Run, c.Events)...))
		h.traces.Committed(ctx, c.Run, c.Events)
	}
}
