package relays

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/adapter/eventbridge"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// The delays of calls.
const (
	readDelay        = 4 * time.Millisecond
	writeDelay       = 6 * time.Millisecond
	transactionDelay = 20 * time.Millisecond
	busDelay         = 15 * time.Millisecond
)

// calls is the DynamoDB client of one process. It delays and counts calls. The process can die
// before and after each call.
type calls struct {
	dynamo.API

	w *world
	p *process
}

// call makes a call in the middle of the call's delay.
func call[In, Out any](
	ctx context.Context, c *calls, delay time.Duration, count func(failed bool), in *In,
	do func(context.Context, *In, ...func(*dynamodb.Options)) (*Out, error),
) (*Out, error) {
	if c.p.dies() {
		return nil, errDied
	}
	delay = c.w.about(delay)
	pause(delay / 2)
	out, err := do(ctx, in)
	if count != nil {
		c.w.mu.Lock()
		count(err != nil)
		c.w.mu.Unlock()
	}
	pause(delay - delay/2)
	if c.p.dies() {
		return nil, errDied
	}
	return out, err
}

func (c *calls) write(failed bool) {
	c.w.counted.Writes++
	if failed {
		c.w.counted.RefusedWrites++
	}
}

func (c *calls) transaction(failed bool) {
	r, refused := &c.w.counted, 0
	if failed {
		refused = 1
	}
	r.Transactions, r.Refused = r.Transactions+1, r.Refused+refused
	if time.Since(c.w.began) > time.Second {
		r.SteadyTransactions, r.SteadyRefused = r.SteadyTransactions+1, r.SteadyRefused+refused
	}
}

// GetItem implements dynamo.API.
func (c *calls) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return call(ctx, c, readDelay, nil, in, c.API.GetItem)
}

// BatchGetItem implements dynamo.API.
func (c *calls) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	return call(ctx, c, readDelay, nil, in, c.API.BatchGetItem)
}

// Query implements dynamo.API.
func (c *calls) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return call(ctx, c, readDelay, nil, in, c.API.Query)
}

// Scan implements dynamo.API.
func (c *calls) Scan(ctx context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return call(ctx, c, readDelay, nil, in, c.API.Scan)
}

// PutItem implements dynamo.API.
func (c *calls) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return call(ctx, c, writeDelay, c.write, in, c.API.PutItem)
}

// UpdateItem implements dynamo.API.
func (c *calls) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return call(ctx, c, writeDelay, c.write, in, c.API.UpdateItem)
}

// DeleteItem implements dynamo.API.
func (c *calls) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return call(ctx, c, writeDelay, c.write, in, c.API.DeleteItem)
}

// TransactWriteItems implements dynamo.API.
func (c *calls) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return call(ctx, c, transactionDelay, c.transaction, in, c.API.TransactWriteItems)
}

// consumed counts the consumed units. It is used as dynamo.Config.Consumed.
func (w *world) consumed(_ string, wru, rru float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counted.Units += wru
	w.counted.Reads += rru
}

// timedFeed records the times of appends.
type timedFeed struct {
	port.Feed

	w *world
}

// Append implements port.Feed.
func (f timedFeed) Append(ctx context.Context, stream string, b port.Batch) (port.Head, error) {
	head, err := f.Feed.Append(ctx, stream, b)
	if err == nil {
		f.w.mu.Lock()
		defer f.w.mu.Unlock()
		for _, r := range b.Records {
			f.w.latencies = append(f.w.latencies, time.Since(f.w.committed[r.ID]))
		}
	}
	return head, err
}

// Publish implements port.Publisher. The bus accepts ten events per request.
func (p *process) Publish(_ context.Context, events []port.PublishedEvent) (failed []int, err error) {
	const entries = 10
	w := p.w
	if p.dies() {
		for i := range events {
			failed = append(failed, i)
		}
		return failed, fault.Wrap(errDied, fault.Unavailable, "no answer")
	}
	for from := 0; from < len(events); from += entries * eventbridge.Concurrent {
		pause(w.about(busDelay))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range events {
		id := e.ID
		if w.published[id]++; w.published[id] == 1 {
			w.counted.BusLast = max(w.counted.BusLast, time.Since(w.committed[ulidOf(id)]))
		}
		w.counted.Published++
	}
	return nil, nil
}

// Wake implements port.Wakes.
func (w *world) Wake(_ context.Context, wakes ...port.Wake) error {
	pause(w.about(busDelay))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counted.Wakes += len(wakes)
	return nil
}

// pause sleeps in virtual time: the world runs in a bubble of testing/synctest.
func pause(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // no real time passes
