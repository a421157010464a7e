package lambdakit_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/functions/export"
	"github.com/sortie-dev/sortie/functions/relay"
	"github.com/sortie-dev/sortie/functions/steps"
	"github.com/sortie-dev/sortie/functions/sweep"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/gateway"
)

var keep = flag.String("keep", "", "write the present inputs and records to this folder; see testdata/README.md")

// golden contains the record and the input of a step in one release.
type golden struct {
	Record json.RawMessage `json:"record"`
	Input  json.RawMessage `json:"input"`
}

func noRoutes(*app.System) []httpkit.Route { return nil }

// stageWith returns a stage whose store has the record.
func stageWith(t *testing.T, record json.RawMessage) *apitest.Stage {
	t.Helper()
	stage := apitest.New(t, apitest.NewParts(t), noRoutes)
	var r run.Run
	if err := json.Unmarshal(record, &r); err != nil {
		t.Fatal(err)
	}
	if _, err := stage.Store.Create(t.Context(), port.Write{Run: r}, nil); err != nil {
		t.Fatal(err)
	}
	return stage
}

// fromTheFuture adds an unknown member to a JSON object.
func fromTheFuture(text json.RawMessage) json.RawMessage {
	return append(json.RawMessage(`{"fromTheFuture":{"a":[1,null]},`), text[1:]...)
}

// TestInputsOfEarlierReleases checks that executions in flight continue with new code.
func TestInputsOfEarlierReleases(t *testing.T) {
	t.Parallel()
	for step, task := range tasks(t) {
		files, err := filepath.Glob("testdata/v*/steps/" + string(step) + ".json")
		if err != nil || len(files) == 0 {
			t.Errorf("got no recorded input of %s (%v)", step, err)
		}
		for _, name := range files {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var g golden
				read(t, name, &g)
				for _, g := range []golden{g, {fromTheFuture(g.Record), fromTheFuture(g.Input)}} {
					stage := stageWith(t, g.Record)
					output, err := steps.Handlers(stage.System)[task.Function](t.Context(), g.Input)
					// The machine of a recorded run does not exist, so terminate may return
					// TryAgain.
					unseen := step == run.StepTerminating && lambdakit.ErrorName(err) == "TryAgain"
					if err != nil && !unseen || err == nil && len(output) == 0 || strings.Contains(stage.Logs(), "was replaced") {
						t.Errorf("got output %s (%v); log: %s", output, err, stage.Logs())
					}
				}
			})
		}
	}
}

// TestRecordsOfEarlierReleases checks that reading and writing a recorded run loses no member.
func TestRecordsOfEarlierReleases(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/v*/steps/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("got no records: %v", err)
	}
	for _, name := range files {
		var g golden
		read(t, name, &g)
		var r run.Run
		if err := json.Unmarshal(g.Record, &r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var was, is map[string]any
		if err := errors.Join(json.Unmarshal(g.Record, &was), json.Unmarshal(text, &is)); err != nil {
			t.Fatal(err)
		}
		lost(t, name, was, is)
	}
}

// lost reports each member of was that is missing in is.
func lost(t *testing.T, path string, was, is map[string]any) {
	t.Helper()
	for name, value := range was {
		inner, nested := value.(map[string]any)
		now, known := is[name]
		if renamed, ok := renamedMembers[name]; ok && !known {
			now, known = is[renamed]
		}
		switch nowInner, still := now.(map[string]any); {
		case !known:
			t.Errorf("%s: got no member %s", path, name)
		case nested && still:
			lost(t, path+": "+name, inner, nowInner)
		}
	}
}

// renamedMembers maps the members of version 0.0 that 0.1 renamed.
var renamedMembers = map[string]string{
	"silent": "heartbeatExempt", "quietFrom": "lastContactAt", "toldAt": "cancelDeliveredAt", "termAt": "sigtermAt",
	"stand": "state", "judgements": "evaluations", "keptAt": "acceptedAt", "machineId": "machine",
}

// TestEventsOfEarlierReleases checks the recorded events of AWS.
func TestEventsOfEarlierReleases(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"schedule", "status_change", "stream", "request"} {
		files, err := filepath.Glob("testdata/v*/events/" + name + ".json")
		if err != nil || len(files) == 0 {
			t.Errorf("got no recorded event %s (%v)", name, err)
		}
		for _, file := range files {
			t.Run(file, func(t *testing.T) {
				t.Parallel()
				var event json.RawMessage
				read(t, file, &event)
				for _, event := range []json.RawMessage{event, fromTheFuture(event)} {
					takes(t, name, event)
				}
			})
		}
	}
}

// noWebhooks is the use case of webhooks in a deployment that has none.
type noWebhooks struct{}

func (noWebhooks) DispatchTenants(context.Context, []string) int { return 0 }
func (noWebhooks) Sweep(context.Context) error                   { return nil }

func takes(t *testing.T, name string, event json.RawMessage) {
	t.Helper()
	stage := apitest.New(t, apitest.NewParts(t), noRoutes)
	switch name {
	case "schedule", "status_change":
		if output, err := sweep.Handler(stage.System.Sweeper, sweep.NoSensors{})(t.Context(), event); err != nil || string(output) != `{}` {
			t.Errorf("sweep: got %s (%v)", output, err)
		}
	case "stream":
		publisher := fake.NewPublisher(nil)
		feed, log := fake.NewFeed(clock.System{}, 24*365*100*time.Hour, nil, func(err error) { t.Error(err) }), slog.New(slog.DiscardHandler)
		keys := fake.NewEventKeys(nil)
		svc := delivery.NewRelay(feed, keys, delivery.NoTurns{}, clock.System{}, log, api.Published("https://sortie.example.org"), series.Discard)
		output, err := relay.Handler(svc, delivery.NewBus(feed, publisher, keys, delivery.NoTurns{}, log), noWebhooks{}, nil, nil, dynamo.ChangeOf, &fake.Traces{}, nil, nil, time.Now)(t.Context(), event)
		if err != nil || string(output) != `{"batchItemFailures":[]}` || len(publisher.Events()) != 1 || publisher.Events()[0].Type != string(run.EventAccepted) || publisher.Events()[0].TaskID == "" {
			t.Errorf("got %s (%v) and events %+v", output, err, publisher.Events())
		}
	case "request":
		server, err := httpkit.New(httpkit.Config{
			Tokens: httpkit.FixedTokens(access.Full("client", "a-client", apitest.Tenant, "main")),
			Clock:  stage.Clock, Log: slog.New(slog.DiscardHandler), NewID: func() string { return "made" },
		}, export.Routes(stage.System.Requests, delivery.NoWebhooks{})...)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := gateway.Gateway{Handler: server, Log: slog.New(slog.DiscardHandler)}.Buffered(t.Context(), event)
		if err != nil || !strings.HasPrefix(string(answer), `{"statusCode":202`) {
			t.Errorf("export: got %s (%v)", answer, err)
		}
	}
}

func read(t *testing.T, name string, v any) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// TestKeep writes the present inputs and records if -keep is set.
func TestKeep(t *testing.T) {
	t.Parallel()
	if *keep == "" {
		t.Log("without -keep=FOLDER nothing is written")
		return
	}
	stage := apitest.New(t, apitest.NewParts(t), noRoutes)
	id := stage.Accept(t)
	write := func(step run.Step, more string) {
		r := stage.Run(t, id)
		record, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		input, err := json.Marshal(runs.StepInput{Ref: r.Ref(), Step: step, Execution: run.ExecutionName(r.Ref(), r.Execution.Start)})
		if err != nil {
			t.Fatal(err)
		}
		input = append(input[:len(input)-1], more+"}"...)
		keepJSON(t, "steps/"+string(step), golden{record, input})
	}
	const token, carried = `,"generation":1,"token":"AQCEAAAAKgAAAAM"`, `,"carried":{"tenant":"tenant-a","generation":1,"seconds":1,"error":{"Error":"States.HeartbeatTimeout","Cause":""}}`
	keepJSON(t, "events/stream", streamOf(t, stage.Run(t, id)))
	for _, step := range run.Steps() {
		task, ok := tasks(t)[step]
		if !ok {
			continue
		}
		switch step { // the record advances with the steps
		case run.StepContainerCreating:
			stage.Admit(t, id)
		case run.StepRunning:
			stage = apitest.New(t, apitest.NewParts(t), noRoutes)
			id = stage.Accept(t)
			stage.Start(t, id)
		case run.StepTerminating:
			stage.Report(t, id, contract.Callback{TaskID: id, Status: "error", Error: "the end"})
		}
		switch {
		case task.Waits:
			write(step, token)
		case step == run.StepReconciling:
			write(step, carried)
		default:
			write(step, "")
		}
	}
}

func keepJSON(t *testing.T, name string, v any) {
	t.Helper()
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(*keep, name+".json")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}
