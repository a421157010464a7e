package growth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// consumption adds up what the responses of DynamoDB report. It is safe for concurrent use.
type consumption struct {
	mu                              sync.Mutex
	requests, readUnits, writeUnits float64
}

func (c *consumption) add(_ string, written, read float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	c.readUnits += read
	c.writeUnits += written
}

func (c *consumption) counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Counts{Requests: c.requests, ReadUnits: c.readUnits, WriteUnits: c.writeUnits}
}

const tableName = "sortie"

// openTable opens a home whose records are in a new DynamoDB table. Its executions are in memory,
// and nothing relays its events.
func openTable(ctx context.Context, dir string, limit int) (*home, error) {
	m := newMachines(start)
	h := &home{
		dir: dir, clock: m.clock, machines: m, random: newRandom(1), log: slog.New(slog.DiscardHandler),
		handlers: map[string]http.Handler{}, consumed: &consumption{},
	}
	fake := awsfake.NewDynamoDB(awsfake.DynamoDBConfig{Clock: m.clock, Seed: 1})
	if err := awsfake.CreateTable(ctx, fake.AWS(), tableName); err != nil {
		return nil, err
	}
	store, err := dynamo.Open(fake.AWS(), dynamo.Config{Table: tableName, Clock: m.clock, Random: h.random.number, Concurrency: 1, Consumed: h.consumed.add})
	if err != nil {
		return nil, err
	}
	h.store = store
	return h, h.wire(ctx, limit)
}

// listScan is the number of entries of an index that one page of the adapter reads at most.
const listScan = 2000

// TableAxes returns the axes that are measured on DynamoDB.
func TableAxes() []Axis {
	only := func(of []operation, without string) (kept []operation) {
		for _, o := range of {
			if o.name == byState || o.name == byCommonState {
				o.bound = listScan
			}
			if o.name != without {
				kept = append(kept, o)
			}
		}
		return kept
	}
	const pageOfMiddle = "list of runs, a page in the middle"
	return []Axis{
		{Name: "queued runs on DynamoDB", OnTable: true, limit: 1, fill: fillQueue, operations: only(append(onRuns("Pending"), operation{name: "end of a run, start of the next", do: endOne}), pageOfMiddle), middle: func(h *home, _ int) time.Time { return h.clock.Now() }},
		{Name: "ended runs on DynamoDB", OnTable: true, fill: fillEndedItems, operations: only(onRuns("Completed"), pageOfMiddle), middle: func(_ *home, n int) time.Time { return endedAt(n / 2) }},
	}
}

// MeasureTable is like Measure on a fake of DynamoDB.
func (a Axis) MeasureTable(ctx context.Context, sizes []int) (*Result, error) {
	dir, err := os.MkdirTemp("", "sortie-growth-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	h, err := openTable(ctx, dir, a.limit)
	if err != nil {
		return nil, err
	}
	r, had := &Result{Axis: a.Name, Sizes: sizes, Table: true}, 0
	for i, n := range sizes {
		if err := a.fill(ctx, h, had, n); err != nil {
			return nil, fmt.Errorf("cannot store %d %s: %w", n, a.Name, err)
		}
		if err := a.operate(ctx, h, r, i); err != nil {
			return nil, fmt.Errorf("%d %s: %w", n, a.Name, err)
		}
		had = n
	}
	return r, nil
}

// fillEndedItems runs a program, and stores copies of its record.
func fillEndedItems(ctx context.Context, h *home, from, to int) error {
	id, err := h.submit(ctx, origin, "/v1/runs", programBody)
	if err == nil {
		err = h.finish(ctx, origin, id)
	}
	if err != nil {
		return err
	}
	r, err := h.store.Find(ctx, origin, id)
	if err != nil {
		return err
	}
	is := identityOf(origin, id, r.CreatedAt)
	doc, err := json.Marshal(r)
	if err != nil {
		return err
	}
	text, err := templateOf(string(doc), is)
	if err != nil {
		return err
	}
	var failed []error
	for i := from + 1; i < to; i++ {
		at := endedAt(i)
		as := identityOf(origin, string(appendULID([]byte("job_"), at, h.random.number)), at)
		var copied run.Run
		if err := json.Unmarshal(text.write(nil, as, at.Sub(is.created), h.random.number), &copied); err != nil {
			return err
		}
		copied.Version = 0
		_, err := h.store.Create(ctx, port.Write{Run: copied}, nil)
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}
