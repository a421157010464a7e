// Package relay publishes the events of committed changes from the outbox. The
// table's stream invokes it with the changes of each run in order.
//
// Its response names the changes that could not be published; the stream delivers
// the first of them and all later ones again, for a day. Delivery is at least once.
// A change that cannot be decoded, that the bus refuses for good, or that is nearly
// a day old is set aside in the outbox and does not hold up the others. A schedule
// and "sortie redrive" make the function publish what was set aside.
package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/api"
	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/lambdakit"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// Decode decodes the new image of a stream record, in DynamoDB's JSON: the run
// after a commit and its events. There are no events if the record is not a
// commit of a run.
type Decode func(image json.RawMessage) (run.Run, []run.Event, error)

// Batch is a batch of stream records, as Lambda delivers it.
type Batch struct {
	Records []json.RawMessage `json:"Records"`
	// Redrive requests that the changes in the outbox are published instead.
	Redrive bool `json:"redrive,omitempty"`
	// DetailType is that of an event of EventBridge; scheduled ones request a redrive.
	DetailType string `json:"detail-type,omitempty"`
}

// scheduled is the type of a scheduled event (EventBridge events reference).
const scheduled = "Scheduled Event"

// record has the fields of a stream record that the relay uses.
type record struct {
	Change struct {
		Number string          `json:"SequenceNumber"`
		At     float64         `json:"ApproximateCreationDateTime"` // seconds since 1970
		Image  json.RawMessage `json:"NewImage"`
	} `json:"dynamodb"`
}

// Answer lists the records to deliver again.
type Answer struct {
	Failures []Failure `json:"batchItemFailures"`
	// Redriven counts the changes that a redrive published, Left those that it
	// could not publish.
	Redriven int `json:"redriven,omitempty"`
	Left     int `json:"left,omitempty"`
}

// Failure is a failed record, by its sequence number.
type Failure struct {
	Number string `json:"itemIdentifier"`
}

// Handler publishes the events of a batch, or of the outbox. It counts changes in the
// metrics EventsRelayed, RelayFailures and RelaySetAside.
func Handler(svc *orchestrator.Relay, outbox port.Outbox, decode Decode, now func() time.Time) lambdakit.TaskFunc {
	h := handler{svc, outbox, decode, now}
	return lambdakit.Task(func(ctx context.Context, batch Batch) (Answer, error) {
		if batch.Redrive || batch.DetailType == scheduled {
			return h.redrive(ctx)
		}
		return h.relay(ctx, batch.Records)
	})
}

type handler struct {
	svc    *orchestrator.Relay
	outbox port.Outbox
	decode Decode
	now    func() time.Time
}

func (h handler) relay(ctx context.Context, records []json.RawMessage) (Answer, error) {
	changes := make([]orchestrator.Change, 0, len(records))
	raw := map[string]json.RawMessage{}
	events := 0
	for _, record := range records {
		change, err := read(record, h.decode)
		if err != nil {
			return Answer{}, lambdakit.InvalidInput{Cause: err}
		}
		changes, raw[change.ID] = append(changes, change), record
		events += len(change.Events)
	}
	answer := Answer{Failures: []Failure{}}
	again, aside := h.svc.Relay(ctx, changes, h.now())
	for _, id := range aside {
		if err := h.outbox.SetAside(ctx, port.StoredChange{ID: id, At: h.now(), Record: raw[id]}); err != nil {
			return Answer{}, fmt.Errorf("cannot set aside a change: %w", err)
		}
	}
	for _, id := range again {
		answer.Failures = append(answer.Failures, Failure{id})
	}
	lambdakit.Count(ctx, "EventsRelayed", events)
	if len(again) > 0 {
		lambdakit.Count(ctx, "RelayFailures", len(again))
	}
	if len(aside) > 0 {
		lambdakit.Count(ctx, "RelaySetAside", len(aside))
	}
	return answer, nil
}

// redrivePage is how many changes of the outbox are published together.
const redrivePage = 25

// redrive publishes the changes in the outbox, page by page until ctx ends. Those
// that fail stay there.
func (h handler) redrive(ctx context.Context) (Answer, error) {
	answer := Answer{Failures: []Failure{}}
	for after := ""; ; {
		stored, next, err := h.outbox.Stored(ctx, after, redrivePage)
		if err != nil {
			return answer, err
		}
		changes := make([]orchestrator.Change, len(stored))
		for i, c := range stored {
			if changes[i], err = read(c.Record, h.decode); err != nil {
				changes[i] = orchestrator.Change{Err: err}
			}
			changes[i].ID = c.ID
		}
		again, aside := h.svc.Relay(ctx, changes, h.now())
		for _, c := range changes {
			if slices.Contains(again, c.ID) || slices.Contains(aside, c.ID) {
				answer.Left++
				continue
			}
			if err := h.outbox.Published(ctx, c.ID); err != nil {
				return answer, err
			}
			answer.Redriven++
		}
		if after = next; after == "" || ctx.Err() != nil {
			return answer, ctx.Err()
		}
	}
}

// read decodes a record. It returns an error for a record without a sequence
// number, which the response could not name.
func read(raw json.RawMessage, decode Decode) (orchestrator.Change, error) {
	var r record
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
	if len(r.Change.Image) == 0 {
		return change, nil // a deletion
	}
	of, events, err := decode(r.Change.Image)
	for _, e := range events {
		event := port.PublishedEvent{
			Tenant: of.Tenant, TaskID: of.TaskID, RunID: of.ID, CorrelationID: of.CorrelationID, Event: e,
		}
		if err == nil {
			event.Detail, err = json.Marshal(contract.RunEvent{
				TenantID: of.Tenant, TaskID: of.TaskID, RunID: of.ID, CorrelationID: of.CorrelationID, TaskEvent: api.Event(e),
			})
		}
		change.Events = append(change.Events, event)
	}
	if err != nil {
		change.Events, change.Err = nil, err
	}
	return change, nil
}
