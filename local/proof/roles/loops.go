package roles

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/local/twin/engine"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

const (
	// sweepPause is the interval of sweeps and redrives; in a deployment it is a minute.
	sweepPause = 2 * time.Second
	// pollPause is the interval of polls of queues, the stream and schedules.
	pollPause = 50 * time.Millisecond
	// relayBatch limits a batch of records, and messageBatch a batch of messages.
	relayBatch, messageBatch = 100, 10
)

// scheduledEvent is the event of a rule with a schedule.
const scheduledEvent = `{"source":"aws.events","detail-type":"Scheduled Event","detail":{}}`

// startLoops starts everything that invokes functions, other than clients, until ctx ends.
func (h *Home) startLoops(ctx context.Context) {
	h.loops.Go(func() {
		if err := h.engine.Run(ctx); err != nil && ctx.Err() == nil {
			h.fail("the engine: %v", err)
		}
	})
	h.every(ctx, sweepPause, func() {
		h.sweeps.Lock()
		defer h.sweeps.Unlock()
		h.event(ctx, "sweep", []byte(scheduledEvent))
	})
	h.every(ctx, sweepPause, func() { h.event(ctx, "relay", []byte(scheduledEvent)) })
	handled := 0
	h.every(ctx, pollPause, func() { handled = h.relay(ctx, handled) })
	h.every(ctx, pollPause, func() {
		for _, input := range h.schedules.Invoke() {
			h.loops.Go(func() { h.event(ctx, "fire", []byte(input)) })
		}
	})
	h.every(ctx, pollPause, func() { h.receive(ctx, "deliver", h.deployed.Functions["deliver"].Environment["SORTIE_DELIVERIES"]) })
	h.every(ctx, pollPause, func() { h.receive(ctx, "push", h.deployed.Functions["push"].Environment["SORTIE_PUSHES"]) })
}

// HoldSweeps makes the home run no sweep until release is called.
func (h *Home) HoldSweeps() (release func()) {
	h.sweeps.Lock()
	return h.sweeps.Unlock
}

// every calls do with a pause before each call, until ctx ends.
func (h *Home) every(ctx context.Context, pause time.Duration, do func()) {
	h.loops.Go(func() {
		for clock.Sleep(ctx, clock.System{}, pause) == nil {
			do()
		}
	})
}

// event invokes a function with an event. Errors are logged.
func (h *Home) event(ctx context.Context, name string, event []byte) []byte {
	answer, err := h.lambda.Invoke(ctx, name, event)
	if err != nil && ctx.Err() == nil {
		h.log.WarnContext(ctx, "a function failed", "function", name, "error", err)
	}
	return answer
}

// step invokes a function for the state machine.
func (h *Home) step(ctx context.Context, function string, payload json.RawMessage) (json.RawMessage, error) {
	answer, err := h.lambda.Invoke(ctx, function, h.odd(ctx, function, payload))
	if failed := (*Failure)(nil); errors.As(err, &failed) {
		return nil, &engine.InvokeError{Name: failed.Type, Cause: failed.Message}
	}
	return answer, err
}

// failures are the failed parts of a batch, which must be delivered again.
type failures struct {
	Failures []struct {
		ID string `json:"itemIdentifier"`
	} `json:"batchItemFailures"`
}

// relay invokes the relay with the next changes of the table after the first handled ones. It
// returns the new number of handled changes. Lambda reads the stream with the relay's role.
func (h *Home) relay(ctx context.Context, handled int) int {
	stream := h.deployed.tableARN() + "/stream/"
	for _, operation := range []string{"DescribeStream", "GetShardIterator", "GetRecords"} {
		if !h.iam.Use("relay", awsfake.Access{Action: "dynamodb:" + operation, Resource: stream + streamLabel}) {
			return handled
		}
	}
	records, all, err := h.table.StreamRecords(h.deployed.table(), "fresh", handled)
	if err != nil {
		h.fail("the stream: %v", err)
		return handled
	}
	for len(records) > 0 && ctx.Err() == nil {
		batch := records[:min(relayBatch, len(records))]
		event, err := json.Marshal(map[string]any{"Records": batch})
		if err != nil {
			h.fail("the stream: %v", err)
			return handled
		}
		var answer failures
		text := h.event(ctx, "relay", event)
		if text == nil || json.Unmarshal(text, &answer) != nil {
			continue // the batch is delivered again
		}
		records = records[done(batch, answer):]
	}
	return all
}

// done returns the number of records before the first failed one.
func done(batch []json.RawMessage, answer failures) int {
	if len(answer.Failures) == 0 {
		return len(batch)
	}
	for i, record := range batch {
		var is struct {
			Change struct{ SequenceNumber string } `json:"dynamodb"`
		}
		if json.Unmarshal(record, &is) == nil && is.Change.SequenceNumber == answer.Failures[0].ID {
			return i
		}
	}
	return 0
}

// receive invokes a function with the messages of its queue. Lambda receives and deletes them
// with the function's role.
func (h *Home) receive(ctx context.Context, function, address string) {
	h.services.mu.Lock()
	q := h.services.queue(address)
	h.services.mu.Unlock()
	messages := q.take(messageBatch)
	for _, operation := range []string{"ReceiveMessage", "GetQueueAttributes", "DeleteMessage"} {
		if !h.iam.Use(function, awsfake.Access{Action: "sqs:" + operation, Resource: queueARN(address)}) {
			return
		}
	}
	if len(messages) == 0 {
		return
	}
	h.loops.Go(func() {
		event, err := json.Marshal(map[string]any{"Records": messages})
		if err != nil {
			h.fail("a queue: %v", err)
			return
		}
		var answer failures
		if text := h.event(ctx, function, event); text == nil || json.Unmarshal(text, &answer) != nil {
			q.again(messages...)
			return
		}
		for _, failed := range answer.Failures {
			for _, m := range messages {
				if m.ID == failed.ID {
					q.again(m)
				}
			}
		}
	})
}
