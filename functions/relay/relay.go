// Package relay tells the events of committed changes to whoever subscribed: the
// outbox's other side. The table's stream calls it, with the changes of each run
// in their order.
//
// It answers with the changes that it could not tell, and is called again with
// the first of them and all behind it; so an event is told at least once, and
// sometimes twice under the same id. A change that cannot be read is told to be
// one of them each time, until the stream puts it aside, and the changes behind
// it are told meanwhile.
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

// Decode reads the new image of a stream's record, in DynamoDB's JSON: the run
// as a commit left it and the events that came with it, none where the record is
// no commit of a run.
type Decode func(image json.RawMessage) (run.Run, []run.Event, error)

// Batch is a part of a table's stream, as Lambda hands it over.
type Batch struct {
	Records []json.RawMessage `json:"Records"`
}

// record is the part of a stream's record that is needed.
type record struct {
	Change struct {
		Number string          `json:"SequenceNumber"`
		Image  json.RawMessage `json:"NewImage"`
	} `json:"dynamodb"`
}

// Answer names the records that have to be handed over again. An empty list is
// none.
type Answer struct {
	Failures []Failure `json:"batchItemFailures"`
}

// Failure is one record, by its sequence number.
type Failure struct {
	Number string `json:"itemIdentifier"`
}

// Handler tells the events of a batch. It counts the metrics EventsRelayed and
// RelayFailures, of changes.
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

// read makes a change of a record. Its error is about a record that could not
// even be named in the answer.
func read(raw json.RawMessage, decode Decode) (orchestrator.Change, error) {
	var r record
	if err := json.Unmarshal(raw, &r); err != nil {
		return orchestrator.Change{}, fmt.Errorf("a record cannot be read: %w", err)
	}
	if r.Change.Number == "" {
		return orchestrator.Change{}, errors.New("a record has no sequence number")
	}
	change := orchestrator.Change{ID: r.Change.Number}
	if len(r.Change.Image) == 0 {
		return change, nil // a deletion
	}
	of, events, err := decode(r.Change.Image)
	for _, e := range events {
		told := port.PublishedEvent{
			Tenant: of.Tenant, TaskID: of.TaskID, RunID: of.ID, CorrelationID: of.CorrelationID, Event: e,
		}
		if err == nil {
			told.Detail, err = json.Marshal(contract.RunEvent{
				TenantID: of.Tenant, TaskID: of.TaskID, RunID: of.ID, CorrelationID: of.CorrelationID, TaskEvent: api.Event(e),
			})
		}
		change.Events = append(change.Events, told)
	}
	if err != nil {
		change.Events, change.Err = nil, err
	}
	return change, nil
}
