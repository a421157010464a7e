package counts_test

import (
	"context"
	"encoding/json"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sortie-dev/sortie/functions/dispatch"
	"github.com/sortie-dev/sortie/functions/relay"
	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/twin/engine"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/adapter/stepfunctions"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
)

const tableName = "sortie"

// onDynamoDB is the deployed system: the adapters of DynamoDB and Step Functions on fakes of
// the services. The commit that gives a task its slot starts a dispatcher.
type onDynamoDB struct {
	w       *world
	fake    *awsfake.DynamoDB
	meter   *meter
	records *dynamo.Store
	feed    *signedFeed
	engine  *engine.Engine
	calls   port.Executions
	states  int // calls of Step Functions
	relays  lambdakit.TaskFunc
	// handled is the number of relayed records of the table's stream.
	handled int
	decoded int
}

func openDynamoDB(w *world) home {
	h := &onDynamoDB{w: w, fake: awsfake.NewDynamoDB(awsfake.DynamoDBConfig{Clock: clock.System{}, Seed: 1})}
	w.ok(awsfake.CreateTable(w.Context(), h.fake.AWS(), tableName))
	h.meter = &meter{Client: dynamodb.NewFromConfig(h.fake.AWS(), func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })}
	var err error
	h.records, err = dynamo.New(h.meter, dynamo.Config{Table: tableName, Clock: clock.System{}, Random: w.random.number, Concurrency: 1, Consumed: h.meter.consumed})
	w.ok(err)
	feed, err := dynamo.NewFeed(h.records, dynamo.FeedConfig{Retention: retention})
	w.ok(err)
	h.feed = &signedFeed{Feed: feed}
	h.engine, err = engine.New(w.Context(), engine.Config{
		Clock: clock.System{}, Name: "run", Definition: w.machine(), Random: w.random.number, Invoke: w.invoke,
	})
	w.ok(err)
	steps, err := awsfake.NewStepFunctions(awsfake.StepFunctionsConfig{
		Clock: clock.System{}, Executions: h.engine, Quotas: awsfake.Quotas(),
		Plan: func(awsfake.Call) awsfake.Fate { h.states++; return awsfake.Applied },
	})
	w.ok(err)
	h.calls, err = stepfunctions.New(steps.AWS(), awsfake.StateMachine)
	w.ok(err)
	return h
}

func (h *onDynamoDB) store() port.Store { return h.records }

func (h *onDynamoDB) executions() port.Executions { return h.calls }

func (h *onDynamoDB) serve(w *world, config runs.Config) app.SystemTasks {
	answers, err := dynamo.NewAnswers(h.records, dynamo.FeedConfig{Retention: retention, WaitInterval: dispatch.Batch})
	w.ok(err)
	return app.CallTasks(answers, func(_ context.Context, call inferences.DispatchCall) error {
		d, _ := app.NewDispatcher(
			app.TasksOnly(runs.NewRecords(h.records, clock.System{}, w.log), config), w.random.Hex, answers, w.system.Models, w.system.Artifacts, noPrompts{}, mocked, series.Discard,
			inferences.DispatcherConfig{ID: "dispatcher-" + w.random.Hex(8), Batch: dispatch.Batch}, config,
		)
		go func() {
			if err := d.ServePool(w.Context(), call, inferences.ServePoolConfig{Seats: h.records, Tasks: dispatch.Tasks, End: clock.System{}.Now().Add(dispatch.MostWithin)}); err != nil {
				w.Error(err)
			}
		}()
		return nil
	})
}

// noPrompts has no large requests.
type noPrompts struct{ inferences.Prompts }

func (h *onDynamoDB) begin(w *world) {
	svc := delivery.NewRelay(h.feed, w.eventKeys, delivery.NoTurns{}, clock.System{}, w.log, api.Published("https://sortie.example.org"), series.Discard)
	bus := delivery.NewBus(h.feed, fake.NewPublisher(nil), w.eventKeys, delivery.NoTurns{}, w.log)
	decode := func(image json.RawMessage) (port.Change, error) {
		h.decoded++
		return dynamo.ChangeOf(image)
	}
	lags := func(context.Context) ([]series.Sample, error) { return nil, nil }
	h.relays = relay.Handler(svc, bus, relay.Dispatchers{}, delivery.NewStreamSweep(svc, nil, nil), h.records, decode, &fake.Traces{}, lags, nil, clock.System{}.Now)
}

func (h *onDynamoDB) step() (time.Time, bool) {
	_, err := h.engine.Step(h.w.Context())
	h.w.ok(err)
	return h.engine.NextDue()
}

// relay calls the relay's function with the records that its event source selects.
func (h *onDynamoDB) relay() {
	changes, all, err := h.fake.StreamRecords(tableName, "fresh", h.handled)
	h.w.ok(err)
	h.handled = all
	batch, err := json.Marshal(relay.Batch{Records: changes})
	h.w.ok(err)
	text, err := h.relays(h.w.Context(), batch)
	h.w.ok(err)
	var answer relay.Answer
	h.w.ok(json.Unmarshal(text, &answer))
	if len(answer.Failures) > 0 {
		h.w.Fatalf("the relay fails for %v", answer.Failures)
	}
}

func (h *onDynamoDB) read(c counts) {
	m := h.meter
	m.mu.Lock()
	defer m.mu.Unlock()
	c[writeRequests], c[readRequests], c[items] = float64(m.writes), float64(m.reads), float64(m.items)
	c[writeUnits], c[readUnits] = m.writeUnits, m.readUnits
	c[encoded], c[decoded] = float64(m.encoded), float64(m.decoded)+float64(h.decoded)
	c[stateCalls], c[signatures] = float64(h.states), c[signatures]+float64(h.feed.signatures)
	size := 0
	pages := dynamodb.NewScanPaginator(m.Client, &dynamodb.ScanInput{TableName: aws.String(tableName)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(h.w.Context())
		h.w.ok(err)
		for _, is := range page.Items {
			size += sizeOf(is)
		}
	}
	c[bytesKept] = float64(size)
}
