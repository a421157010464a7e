package harness

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
	W      *Base
	db     *awsfake.DynamoDB
	Store  *dynamo.Store
	steps  *awsfake.StepFunctions
	engine *engine.Engine
	calls  port.Executions
	// lanes has the changes by lane. read is the number of stream records read so far.
	lanes [Lanes][]Streamed
	read  int
}

const tableName = "sortie"

// Lanes is the number of concurrent relays on AWS. They have changes of different runs.
const Lanes = 4

// encoded selects one in 40 seeds to call DynamoDB through the SDK, which takes longer than a
// direct call of the fake.
const encoded = 40

// NewAWSHome returns the services of AWS without data. Replicas and indexes of
// the table lag, some reads are stale, and calls are throttled or conflict.
func NewAWSHome(ctx context.Context, w *Base) (*awsHome, error) {
	h := &awsHome{W: w}
	lag := time.Duration(w.Random.IntN(3)) * w.UpTo(3*time.Second)
	w.Lag = lag
	rare := awsfake.Seeded(w.Seed, w.Plan.ServiceFaults/20, awsfake.Throttled, awsfake.Conflicted, awsfake.Lost, awsfake.Unsure)
	often := awsfake.Seeded(w.Seed+1, w.Plan.ServiceFaults, awsfake.Partial)
	h.db = awsfake.NewDynamoDB(awsfake.DynamoDBConfig{
		Clock: trueClock{w}, Seed: w.Seed, Lag: lag, Stale: w.Random.Float64(),
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
		Clock: trueClock{w}, Name: "run", MaxEvents: w.Config.MaxEvents, Definition: machine, Log: w.Log, Random: w.Random.Uint64,
		Invoke: w.invoke, Entered: w.entered,
	})
	if err != nil {
		return nil, err
	}
	h.steps, err = awsfake.NewStepFunctions(awsfake.StepFunctionsConfig{
		Clock: trueClock{w}, Executions: h.engine, Quotas: awsfake.Quotas(), Seed: w.Seed, Stale: w.Random.Float64(), Lag: lag,
		Plan: h.duringCalls(awsfake.Seeded(w.Seed, w.Plan.ServiceFaults, awsfake.Throttled)),
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
		if h.W.Time.Current == nil || h.W.Time.Current.Call == nil || h.W.Settling || h.W.IsHealed() {
			return awsfake.Applied
		}
		fate := plan(c)
		if fate != awsfake.Applied {
			h.W.Injected[fates[fate]]++
		}
		return fate
	}
}

var fates = map[awsfake.Fate]string{
	awsfake.Lost: "lost call of AWS", awsfake.Unsure: "unanswered call of AWS", awsfake.Throttled: "throttled call of AWS",
	awsfake.Conflicted: "conflicted call of AWS", awsfake.Partial: "partial answer of AWS",
}

// open implements home.
func (h *awsHome) open(context.Context) (database, error) {
	config := dynamo.Config{Table: tableName, Clock: HostClock{h.W}, Random: h.W.Random.Uint64, Concurrency: 1}
	var err error
	if h.W.Seed%encoded == 0 {
		h.Store, err = dynamo.Open(h.db.AWS(), config)
	} else {
		h.Store, err = dynamo.New(h.db.Direct(), config)
	}
	return h.Store, err
}

// Feed implements home.
func (h *awsHome) Feed(context.Context) (port.Feed, error) {
	return dynamo.NewFeed(h.Store, dynamo.FeedConfig{Retention: eventRetention})
}

// Streamed is a record of the table's stream, with its lane and sequence number.
type Streamed struct {
	Record       json.RawMessage
	lane, Number int
}

// Changes reads the table's stream with the filter of the relay's event source: records of
// commits with events, and of notes.
func (h *awsHome) Changes(lane, handled int) ([]Streamed, int, error) {
	records, all, err := h.db.StreamRecords(tableName, "fresh", h.read)
	if err != nil {
		return nil, 0, err
	}
	for _, r := range records {
		of := laneOf(r)
		h.lanes[of] = append(h.lanes[of], Streamed{r, of, numberOf(r)})
	}
	h.read = all
	first, _ := slices.BinarySearchFunc(h.lanes[lane], handled+1, func(s Streamed, number int) int { return cmp.Compare(s.Number, number) })
	return h.lanes[lane][first:], all, nil
}

// start implements home.
func (h *awsHome) start(context.Context) error { return nil }

// Close implements home.
func (h *awsHome) Close() error { return nil }

// executions implements home.
func (h *awsHome) executions() port.Executions { return h.calls }

// States implements home.
func (h *awsHome) States() port.Executions { return h.engine }

// Step implements home.
func (h *awsHome) Step(ctx context.Context) error {
	_, err := h.engine.Step(ctx)
	return err
}

// Due implements home.
func (h *awsHome) Due() (time.Time, bool) { return h.engine.NextDue() }

// Settle implements home.
func (h *awsHome) Settle() { h.db.Settle() }

// SurvivesCrash implements home.
func (h *awsHome) SurvivesCrash() bool { return true }

// trueClock is the correct clock of a service.
type trueClock struct{ W *Base }

var _ clock.Clock = trueClock{}

// Now implements clock.Clock.
func (c trueClock) Now() time.Time { return c.W.Time.Now }

// NewTimer implements clock.Clock as hostClock does.
func (c trueClock) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	return HostClock(c).NewTimer(d)
}

// laneOf returns the lane of a record. All changes of an item are in the same lane.
func laneOf(record json.RawMessage) int {
	var r struct {
		Change struct {
			Keys json.RawMessage `json:"Keys"`
		} `json:"dynamodb"`
	}
	_ = json.Unmarshal(record, &r) //nolint:errcheck // the fake has encoded it
	return int(crc32.ChecksumIEEE(r.Change.Keys) % Lanes)
}

// Sequence returns the sequence number of a record of the table's stream.
func Sequence(record json.RawMessage) string {
	var r struct {
		Change struct {
			Number string `json:"SequenceNumber"`
		} `json:"dynamodb"`
	}
	_ = json.Unmarshal(record, &r) //nolint:errcheck // the fake has encoded it
	return r.Change.Number
}

func numberOf(record json.RawMessage) (n int) {
	for _, digit := range Sequence(record) {
		n = 10*n + int(digit-'0')
	}
	return n
}
