// Package relay publishes the events of committed changes from the outbox. The
// table's stream invokes it with the changes of each run in order.
//
// Its response names the first change that could not be published; the stream
// delivers that one and all later ones again. Delivery is at least once. A
// change that cannot be decoded is reported as failed each time, until the
// stream discards it; the changes after it are published meanwhile.
package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

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
}

// record has the fields of a stream record that the relay uses.
type record struct {
	Change struct {
		Number string          `json:"SequenceNumber"`
		Image  json.RawMessage `json:"NewImage"`
	} `json:"dynamodb"`
}

// Answer lists the records to deliver again.
type Answer struct {
	Failures []Failure `json:"batchItemFailures"`
}

// Failure is a failed record, by its sequence number.
type Failure struct {
	Number string `json:"itemIdentifier"`
}

// Handler publishes the events of a batch. It counts changes in the metrics
// EventsRelayed and RelayFailures.
func Handler(svc *orchestrator.Relay, decode Decode) lambdakit.TaskFunc {
	return lambdakit.Task(func(ctx context.Context, batch Batch) (Answer, error) {
		changes := make([]orchestrator.Change, 0, len(batch.Records))
		events := 0
		for _, raw := range batch.Records {
			change, err := read(raw, decode)
			if err != nil {
				return Answer{}, lambdakit.InvalidInput{Cause: err}
			}
			changes = append(changes, change)
			events += len(change.Events)
		}
		answer := Answer{Failures: []Failure{}}
		for _, id := range svc.Relay(ctx, changes) {
			answer.Failures = append(answer.Failures, Failure{id})
		}
		lambdakit.Count(ctx, "EventsRelayed", events)
		if len(answer.Failures) > 0 {
			lambdakit.Count(ctx, "RelayFailures", len(answer.Failures))
		}
		return answer, nil
	})
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
