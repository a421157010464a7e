// Package eventbridge publishes events to a bus of Amazon EventBridge.
//
// Each event is one entry. Its source is "orch.event", its detail type the event's type
// ("job.started"), its resources the run and the task, and its detail the message: a CloudEvent
// with the signed event. It has the event's time. Rules can match any of them.
//
// A call makes as few requests as the API allows. An entry that the bus refuses does not affect
// the others. The requests of a call are concurrent, because a bus keeps no order. A signed
// event that is not a JSON object is refused without a request.
package eventbridge

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"golang.org/x/sync/errgroup"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// Source is the source of every event.
const Source = "orch.event"

// Limits of one request (EventBridge API reference, "PutEvents"): ten entries, and 1 MB in
// total. Requests are cut at the older limit of 256 KB, which every partition accepts; a larger
// entry has its own request. The largest message of an event of at most 64 KiB is below both.
const (
	maxEntries    = 10
	maxBytes      = 256_000
	maxEntryBytes = 1_000_000
	bytesOfTime   = 14 // as "Calculating PutEvents event entry size" counts it
	maxSendTries  = 6
)

// Concurrent is the number of concurrent requests of one call.
const Concurrent = 10

// Publisher publishes to one bus. It is safe for concurrent use.
type Publisher struct {
	client *eventbridge.Client
	bus    string
}

var _ port.Publisher = (*Publisher)(nil)

// New returns a publisher to the bus with this name or ARN. It makes no call.
func New(cfg aws.Config, bus string) (*Publisher, error) {
	if bus == "" {
		return nil, errors.New("cannot use the event bus: its name is missing")
	}
	client := eventbridge.NewFromConfig(cfg, func(o *eventbridge.Options) { o.RetryMaxAttempts = maxSendTries })
	return &Publisher{client, bus}, nil
}

// entry is an event with its index in the call.
type entry struct {
	index int
	size  int
	types.PutEventsRequestEntry
}

// Publish implements port.Publisher. It returns Unavailable for events that the bus did not
// accept.
func (p *Publisher) Publish(ctx context.Context, events []port.PublishedEvent) (failed []int, err error) {
	refused := make([]error, len(events))
	var batch []entry
	size := 0
	var requests errgroup.Group
	requests.SetLimit(Concurrent)
	send := func() {
		if one := batch; len(one) > 0 {
			requests.Go(func() error {
				p.send(ctx, one, refused) // no other request has its events
				return nil
			})
		}
		batch, size = nil, 0
	}
	for i, event := range events {
		e, err := p.entry(i, event)
		if err != nil {
			refused[i] = err
			continue
		}
		if len(batch) == maxEntries || size+e.size > maxBytes {
			send()
		}
		batch, size = append(batch, e), size+e.size
	}
	send()
	_ = requests.Wait() // refused has what failed
	for i, why := range refused {
		if why != nil {
			failed = append(failed, i)
			err = errors.Join(err, fmt.Errorf("event %s: %w", events[i].ID, why))
		}
	}
	return failed, err
}

func (p *Publisher) entry(index int, event port.PublishedEvent) (entry, error) {
	detail, err := event.Encode()
	if err != nil {
		return entry{}, err
	}
	e := entry{index: index, PutEventsRequestEntry: types.PutEventsRequestEntry{
		EventBusName: &p.bus, Source: aws.String(Source), DetailType: aws.String(event.Type),
		Time: &event.Time, Detail: aws.String(string(detail)),
	}}
	if event.TaskID != "" {
		e.Resources = []string{"run/" + event.RunID, "task/" + event.TaskID}
	}
	e.size = bytesOfTime + len(*e.Source) + len(*e.DetailType) + len(*e.Detail)
	for _, resource := range e.Resources {
		e.size += len(resource)
	}
	if e.size >= maxEntryBytes {
		return entry{}, fmt.Errorf("it has %d bytes, and a bus takes less than %d", e.size, maxEntryBytes)
	}
	return e, nil
}

// send makes one request and records why an entry was not accepted.
func (p *Publisher) send(ctx context.Context, batch []entry, refused []error) {
	input := &eventbridge.PutEventsInput{}
	for _, e := range batch {
		input.Entries = append(input.Entries, e.PutEventsRequestEntry)
	}
	answer, err := p.client.PutEvents(ctx, input)
	if err == nil && len(answer.Entries) != len(batch) {
		err = fmt.Errorf("%d entries are answered with %d", len(batch), len(answer.Entries))
	}
	for i, e := range batch {
		switch {
		case err != nil:
			refused[e.index] = fault.Wrap(err, fault.Unavailable, "the event bus is unavailable")
		case answer.Entries[i].EventId == nil || answer.Entries[i].ErrorCode != nil:
			refused[e.index] = fault.New(fault.Unavailable, "the event bus has refused it: %s, %s",
				aws.ToString(answer.Entries[i].ErrorCode), aws.ToString(answer.Entries[i].ErrorMessage))
		}
	}
}
