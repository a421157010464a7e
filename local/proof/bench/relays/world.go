package relays

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/functions/relay"
	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
)

const (
	table = "sortie"
	// batch limits the changes in a call of a lane. callTime is the time limit of its function.
	batch    = 100
	callTime = 30 * time.Second
	// runs is the number of runs with concurrent events.
	runs = 1000
)

// world is a table with its stream, a bus, and the functions between them.
type world struct {
	*testing.T
	Case

	db    *awsfake.DynamoDB
	keys  *fake.EventKeys
	lanes []*lane
	// idle are the processes without a call.
	idle chan *process

	mu        sync.Mutex
	random    *rand.Rand
	counted   Result
	latencies []time.Duration
	// committed maps ULIDs to commit times. published counts the messages on the bus.
	committed map[string]time.Time
	published map[string]int
	deaths    int
	began     time.Time
	number    int
}

// lane has the changes that are not yet relayed.
type lane struct {
	waiting chan json.RawMessage
}

func open(t *testing.T, c Case) (*world, error) {
	w := &world{
		T: t, Case: c, keys: fake.NewEventKeys(nil), random: rand.New(rand.NewPCG(1, 2)), //nolint:gosec // repeated measurements are compared
		committed: map[string]time.Time{}, published: map[string]int{}, deaths: c.Deaths, idle: make(chan *process, 10*c.Lanes),
	}
	w.db = awsfake.NewDynamoDB(awsfake.DynamoDBConfig{Clock: clock.System{}, Partition: awsfake.PartitionThroughput()})
	if err := awsfake.CreateTable(t.Context(), w.db.AWS(), table); err != nil {
		return nil, err
	}
	for range c.Lanes {
		w.lanes = append(w.lanes, &lane{make(chan json.RawMessage, 100*c.Rate)})
	}
	return w, nil
}

// process is a process of the function.
type process struct {
	w      *world
	handle lambdakit.TaskFunc
	dead   atomic.Bool
}

// errDied is the result of all calls of a dead process. The caller does not read its answer.
var errDied = errors.New("the process has died")

// dies reports whether the process is dead. It kills the process at random until the case's
// deaths are used up.
func (p *process) dies() bool {
	w := p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.deaths > 0 && w.random.IntN(500) == 0 {
		w.deaths--
		p.dead.Store(true)
	}
	return p.dead.Load()
}

func (w *world) newProcess() (*process, error) {
	p := &process{w: w}
	client := dynamodb.NewFromConfig(w.db.AWS(), func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
	store, err := dynamo.New(&calls{client, w, p}, dynamo.Config{Table: table, Clock: clock.System{}, Consumed: w.consumed})
	if err != nil {
		return nil, err
	}
	own, err := dynamo.NewFeed(store, dynamo.FeedConfig{Retention: 24 * time.Hour})
	if err != nil {
		return nil, err
	}
	feed, log := timedFeed{own, w}, slog.New(slog.DiscardHandler)
	turns := delivery.NewTurns(store, store, clock.System{}, log, w.Float64)
	hooks := delivery.NewSubscriptions(store, feed, w, api.WebhookDocument, clock.System{}, log, w)
	relays := delivery.NewRelay(feed, w.keys, turns, clock.System{}, log, api.Published("https://sortie.example.org"), series.Discard)
	bus := delivery.NewBus(feed, p, w.keys, turns, log)
	dispatch := delivery.NewDispatch(delivery.NewDeliverer(hooks, store, nil, w.Float64, "bench", series.Discard), turns)
	p.handle = relay.Handler(
		relays, bus, dispatch, delivery.NewStreamSweep(relays, []delivery.StreamWork{bus.Work(), dispatch.Work()}, nil),
		store, decode, &fake.Traces{}, func(context.Context) ([]series.Sample, error) { return nil, nil }, nil, clock.System{}.Now,
	)
	return p, nil
}

// Float64 and Hex implement runs.Random.
func (w *world) Float64() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.Float64()
}

// Hex implements runs.Random.
func (w *world) Hex(n int) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprintf("%0*x", n, w.random.Uint64())[:n]
}

// about returns a random duration from four fifths to six fifths of d.
func (w *world) about(d time.Duration) time.Duration {
	return time.Duration((0.8 + 0.4*w.Float64()) * float64(d))
}

// image is the new image in a change record.
type image struct {
	Tenant, Run, ID string
	Seq             int
	At              time.Time
}

// decode implements relay.Decode.
func decode(raw json.RawMessage) (port.Change, error) {
	var i image
	if err := json.Unmarshal(raw, &i); err != nil {
		return port.Change{}, err
	}
	return port.Change{
		Run: run.Run{
			Tenant: i.Tenant, Workspace: "default", ID: i.Run, TaskID: "export_" + i.Run, CorrelationID: "0f8fad5b-d9cb-469f-a165-70867728950e",
			Work: spec.Work{Kind: spec.KindExport},
		},
		Events: []run.Event{{
			ID: i.ID, Seq: i.Seq, Type: run.EventFailed, At: i.At, From: run.Terminating, State: run.Failed, Attempt: i.Seq,
			Fault: fault.New(fault.WorkerLost, "the machine is gone"), Actor: run.Actor{Subject: "worker:vm-90ab4121"},
		}},
	}, nil
}

func (c Case) tenant(i int) string { return fmt.Sprintf("tenant-%03d", i%c.Tenants) }

// play commits the events of the case and relays them.
func (w *world) play() {
	store, err := dynamo.Open(w.db.AWS(), dynamo.Config{Table: table, Clock: clock.System{}})
	if err != nil {
		w.Fatal(err)
	}
	for i := range w.Tenants { // so that webhooks are queued for each event
		hook := webhook.Webhook{Tenant: w.tenant(i), ID: webhook.ID(time.Now(), w.tenant(i)), URL: "https://example.org", CreatedAt: time.Now()}
		if err := store.SaveWebhook(w.Context(), hook, &webhook.Progress{Tenant: hook.Tenant, ID: hook.ID}); err != nil {
			w.Fatal(err)
		}
	}
	w.began = time.Now()
	var working sync.WaitGroup
	for _, l := range w.lanes {
		working.Go(func() { w.serve(l) })
	}
	for time.Since(w.began) < w.For {
		w.commit()
		pause(time.Second / time.Duration(w.Rate))
	}
	for _, l := range w.lanes {
		close(l.waiting)
	}
	working.Wait()
}

// commit commits the next event. All events of a run go to the same lane.
func (w *world) commit() {
	n := w.number
	w.number++
	one := image{Tenant: w.tenant(n % runs), Run: fmt.Sprintf("run-%04d", n%runs), Seq: n/runs + 1, At: time.Now().UTC()}
	one.ID = run.EventID(one.At, fmt.Sprint(one.Run, one.Seq))
	w.mu.Lock()
	w.committed[one.ID] = one.At
	w.mu.Unlock()
	text, err := json.Marshal(map[string]any{"dynamodb": map[string]any{
		"SequenceNumber": fmt.Sprint(n + 1), "ApproximateCreationDateTime": one.At.Unix(), "NewImage": one,
	}})
	if err != nil {
		w.Fatal(err)
	}
	w.lanes[n%runs%w.Lanes].waiting <- text
}

// serve calls the function with the changes of a lane, and again with those that it has not
// relayed.
func (w *world) serve(l *lane) {
	var records []json.RawMessage
	for open := true; open || len(records) > 0; {
		if len(records) == 0 {
			record, ok := <-l.waiting
			if open = ok; !ok {
				continue
			}
			records = append(records, record)
		}
		for len(records) < batch && len(l.waiting) > 0 {
			records = append(records, <-l.waiting)
		}
		records = records[w.invoke(records):]
	}
}

// invoke calls the function in an idle or new process. It returns how many of the first changes
// are relayed.
func (w *world) invoke(records []json.RawMessage) (done int) {
	var p *process
	select {
	case p = <-w.idle:
	default:
		var err error
		if p, err = w.newProcess(); err != nil {
			w.Error(err)
			return len(records)
		}
	}
	payload, err := json.Marshal(relay.Batch{Records: records})
	if err != nil {
		w.Error(err)
		return len(records)
	}
	ctx, cancel := context.WithTimeout(w.Context(), callTime)
	defer cancel()
	out, err := p.handle(ctx, payload)
	if p.dead.Load() {
		pause(time.Second) // Lambda waits before it retries
		return 0
	}
	if err != nil {
		w.Error(err)
		return 0
	}
	w.idle <- p
	var answer relay.Answer
	if err := json.Unmarshal(out, &answer); err != nil {
		w.Error(err)
	}
	if len(answer.Failures) == 0 {
		return len(records)
	}
	for i, r := range records {
		if strings.Contains(string(r), `"SequenceNumber":"`+answer.Failures[0].Number+`"`) {
			return i
		}
	}
	return 0
}

// sweep calls the function like the schedule, a minute after the load. It publishes the events
// that a dead process had to publish.
func (w *world) sweep() {
	pause(time.Minute)
	w.deaths = 0
	p, err := w.newProcess()
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(w.Context(), callTime)
	defer cancel()
	if _, err := p.handle(ctx, json.RawMessage(`{"detail-type":"Scheduled Event"}`)); err != nil {
		w.Error(err)
	}
}

func ulidOf(id string) string { return strings.TrimPrefix(id, events.ID("")) }

// check compares the streams and the bus with the committed events.
func (w *world) check() {
	store, err := dynamo.Open(w.db.AWS(), dynamo.Config{Table: table, Clock: clock.System{}})
	if err != nil {
		w.Fatal(err)
	}
	feed, err := dynamo.NewFeed(store, dynamo.FeedConfig{Retention: 24 * time.Hour})
	if err != nil {
		w.Fatal(err)
	}
	stored, seqs := map[string]bool{}, map[string]int{}
	for i := range w.Tenants {
		for at := int64(0); ; {
			page, err := feed.Read(w.Context(), port.EventStream(w.tenant(i)), at, 1000)
			if err != nil {
				w.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			for _, r := range page {
				e, _, err := events.Unverified(r.Data)
				if err != nil || r.Position != at+1 || stored[r.ID] || e.Job.Seq != seqs[e.Job.RunID]+1 {
					w.Fatalf("got event %d of %s at position %d behind %d (stored before: %t, its predecessor is %d): %v",
						e.Job.Seq, e.Job.RunID, r.Position, at, stored[r.ID], seqs[e.Job.RunID], err)
				}
				at, stored[r.ID], seqs[e.Job.RunID] = r.Position, true, e.Job.Seq
			}
		}
	}
	if len(stored) != len(w.committed) {
		w.Errorf("got %d events in the streams, want %d", len(stored), len(w.committed))
	}
	if missing := len(w.committed) - len(w.published); missing > 0 {
		w.Errorf("the bus has not got %d events", missing)
	}
}
