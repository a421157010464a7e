package simulation

import (
	"cmp"
	"context"
	"encoding/json"
	"hash/crc32"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/local/twin/engine"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/adapter/stepfunctions"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
)

// awsHome runs the adapters of DynamoDB and Step Functions on in-process fakes of the services,
// whose clocks are correct. Every call of Sortie runs in its own process.
type awsHome struct {
	w      *base
	db     *awsfake.DynamoDB
	store  *dynamo.Store
	steps  *awsfake.StepFunctions
	engine *engine.Engine
	calls  port.Executions
	// lanes has the changes by lane. read is the number of stream records read so far.
	lanes [lanes][]streamed
	read  int
}

const tableName = "sortie"

// lanes is the number of concurrent relays on AWS. They have changes of different runs.
const lanes = 4

// encoded selects one in 40 seeds to call DynamoDB through the SDK, which takes longer than a
// direct call of the fake.
const encoded = 40

// newAWSHome returns the services of AWS without data. Replicas and indexes of
// the table lag, some reads are stale, and calls are throttled or conflict.
func newAWSHome(ctx context.Context, w *base) (*awsHome, error) {
	h := &awsHome{w: w}
	lag := time.Duration(w.random.IntN(3)) * w.upTo(3*time.Second)
	w.lag = lag
	rare := awsfake.Seeded(w.seed, w.plan.serviceFaults/20, awsfake.Throttled, awsfake.Conflicted, awsfake.Lost, awsfake.Unsure)
	often := awsfake.Seeded(w.seed+1, w.plan.serviceFaults, awsfake.Partial)
	h.db = awsfake.NewDynamoDB(awsfake.DynamoDBConfig{
		Clock: trueClock{w}, Seed: w.seed, Lag: lag, Stale: w.random.Float64(),
		Plan: h.duringCalls(func(c awsfake.Call) awsfake.Fate { return max(rare(c), often(c)) }),
	})
	if err := awsfake.CreateTable(ctx, h.db.AWS(), tableName); err != nil {
		return nil, err
	}
	machine, err := stateMachine()
	if err != nil {
		return nil, err
	}
	h.engine, err = engine.New(ctx, engine.Config{
		Clock: trueClock{w}, Name: "run", MaxEvents: w.config.MaxEvents, Definition: machine, Log: w.log, Random: w.random.Uint64,
		Invoke: w.invoke, Entered: w.entered,
	})
	if err != nil {
		return nil, err
	}
	h.steps, err = awsfake.NewStepFunctions(awsfake.StepFunctionsConfig{
		Clock: trueClock{w}, Executions: h.engine, Quotas: awsfake.Quotas(), Seed: w.seed, Stale: w.random.Float64(), Lag: lag,
		Plan: h.duringCalls(awsfake.Seeded(w.seed, w.plan.serviceFaults, awsfake.Throttled)),
	})
	if err != nil {
		return nil, err
	}
	h.calls, err = stepfunctions.New(h.steps.AWS(), awsfake.StateMachine)
	return h, err
}

// duringCalls applies a plan to the calls of Sortie, but not to those of the simulation itself.
func (h *awsHome) duringCalls(plan awsfake.Plan) awsfake.Plan {
	return func(c awsfake.Call) awsfake.Fate {
		if h.w.time.current == nil || h.w.time.current.call == nil || h.w.settling || h.w.isHealed() {
			return awsfake.Applied
		}
		return plan(c)
	}
}

// open implements home.
func (h *awsHome) open(context.Context) (database, error) {
	config := dynamo.Config{Table: tableName, Clock: hostClock{h.w}, Random: h.w.random.Uint64, Concurrency: 1}
	var err error
	if h.w.seed%encoded == 0 {
		h.store, err = dynamo.Open(h.db.AWS(), config)
	} else {
		h.store, err = dynamo.New(h.db.Direct(), config)
	}
	return h.store, err
}

// feed implements home.
func (h *awsHome) feed(context.Context) (port.Feed, error) {
	return dynamo.NewFeed(h.store, dynamo.FeedConfig{Retention: eventRetention})
}

// streamed is a record of the table's stream, with its lane and sequence number.
type streamed struct {
	record       json.RawMessage
	lane, number int
}

// changes reads the table's stream with the filter of the relay's event source: records of
// commits with events, and of notes.
func (h *awsHome) changes(lane, handled int) ([]streamed, int, error) {
	records, all, err := h.db.StreamRecords(tableName, "fresh", h.read)
	if err != nil {
		return nil, 0, err
	}
	for _, r := range records {
		of := laneOf(r)
		h.lanes[of] = append(h.lanes[of], streamed{r, of, numberOf(r)})
	}
	h.read = all
	first, _ := slices.BinarySearchFunc(h.lanes[lane], handled+1, func(s streamed, number int) int { return cmp.Compare(s.number, number) })
	return h.lanes[lane][first:], all, nil
}

// start implements home.
func (h *awsHome) start(context.Context) error { return nil }

// close implements home.
func (h *awsHome) close() error { return nil }

// executions implements home.
func (h *awsHome) executions() port.Executions { return h.calls }

// states implements home.
func (h *awsHome) states() port.Executions { return h.engine }

// step implements home.
func (h *awsHome) step(ctx context.Context) error {
	_, err := h.engine.Step(ctx)
	return err
}

// due implements home.
func (h *awsHome) due() (time.Time, bool) { return h.engine.NextDue() }

// settle implements home.
func (h *awsHome) settle() { h.db.Settle() }

// survivesCrash implements home.
func (h *awsHome) survivesCrash() bool { return true }

// trueClock is the correct clock of a service.
type trueClock struct{ w *base }

var _ clock.Clock = trueClock{}

// Now implements clock.Clock.
func (c trueClock) Now() time.Time { return c.w.time.now }

// NewTimer implements clock.Clock as hostClock does.
func (c trueClock) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	return hostClock(c).NewTimer(d)
}

// laneOf returns the lane of a record. All changes of an item are in the same lane.
func laneOf(record json.RawMessage) int {
	var r struct {
		Change struct {
			Keys json.RawMessage `json:"Keys"`
		} `json:"dynamodb"`
	}
	_ = json.Unmarshal(record, &r) //nolint:errcheck // the fake has encoded it
	return int(crc32.ChecksumIEEE(r.Change.Keys) % lanes)
}

// sequence returns the sequence number of a record of the table's stream.
func sequence(record json.RawMessage) string {
	var r struct {
		Change struct {
			Number string `json:"SequenceNumber"`
		} `json:"dynamodb"`
	}
	_ = json.Unmarshal(record, &r) //nolint:errcheck // the fake has encoded it
	return r.Change.Number
}

func numberOf(record json.RawMessage) (n int) {
	for _, digit := range sequence(record) {
		n = 10*n + int(digit-'0')
	}
	return n
}
