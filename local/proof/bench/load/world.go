package load

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/local/proof/bench/seeded"

	"github.com/sortie-dev/sortie/functions/callback"
	runroutes "github.com/sortie-dev/sortie/functions/runs"
	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/twin/engine"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/adapter/keyfile"
	"github.com/sortie-dev/sortie/shared/adapter/stepfunctions"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/grants"
	service "github.com/sortie-dev/sortie/shared/app/setting"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/setting"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
	"github.com/sortie-dev/sortie/statemachines"
)

const (
	tableName     = "sortie"
	sweepInterval = time.Minute
	beatInterval  = 30 * time.Second
)

// mark has what happened to a run.
type mark struct {
	tenant, attempts                          int
	asked, accepted, started, reported, ended time.Time
}

// world is a deployment with its clients and machines.
type world struct {
	tenants  int
	db       *awsfake.DynamoDB
	steps    *awsfake.StepFunctions
	engine   *engine.Engine
	lambdas  *lambdas
	machines *machines
	outputs  port.Outputs
	signer   port.Signer

	stop    context.CancelFunc
	running sync.WaitGroup

	random *seeded.Random

	mu     sync.Mutex
	result Result
	marks  map[string]*mark // by task
	units  map[int64]float64
}

// open starts the deployment. Files of keys are in the folder.
func open(ctx context.Context, dir string, c Case) (*world, error) {
	w := &world{
		tenants: c.Tenants, outputs: fake.NewOutputs(clock.System{}, nil), random: seeded.New(), marks: map[string]*mark{}, units: map[int64]float64{},
		result: Result{Calls: map[string]int{}, Refusals: map[string]int{}},
	}
	w.lambdas = &lambdas{w: w, idle: map[string][]*environment{}}
	w.machines = &machines{w: w, all: map[string]*machine{}}
	w.db = awsfake.NewDynamoDB(awsfake.DynamoDBConfig{Clock: clock.System{}, Seed: 1, Partition: awsfake.PartitionThroughput()})
	if err := awsfake.CreateTable(ctx, w.db.AWS(), tableName); err != nil {
		return nil, err
	}
	if err := w.openServices(ctx, dir); err != nil {
		return nil, err
	}
	ctx, w.stop = context.WithCancel(ctx)
	w.running.Go(func() { _ = w.engine.Run(ctx) })
	w.running.Go(func() { w.sweep(ctx) })
	return w, nil
}

func (w *world) openServices(ctx context.Context, dir string) (err error) {
	if w.signer, err = keyfile.Open(filepath.Join(dir, "keys.pem")); err != nil {
		return err
	}
	if err := w.openEngine(ctx); err != nil {
		return err
	}
	w.steps, err = awsfake.NewStepFunctions(awsfake.StepFunctionsConfig{Clock: clock.System{}, Executions: w.engine, Quotas: awsfake.Quotas()})
	return err
}

// newEnvironment starts the process of a function: the use cases with their own memory and
// clients.
func (w *world) newEnvironment() (*environment, error) {
	records, err := dynamo.Open(w.through(w.db.AWS()), dynamo.Config{Table: tableName, Clock: clock.System{}, Random: w.random.Uint64, Consumed: w.consumed})
	if err != nil {
		return nil, err
	}
	executions, err := stepfunctions.New(w.through(w.steps.AWS()), awsfake.StateMachine)
	if err != nil {
		return nil, err
	}
	config, err := service.Read(setting.Map(map[string]string{"SORTIE_MAX_MACHINES": "0"}))
	if err != nil {
		return nil, err
	}
	config.PublicURL, config.SourceURL, config.SweepInterval = "http://sortie.example", "http://source.example", sweepInterval
	e := &environment{system: app.NewSystem(
		records, executions, fake.NewSchedules(nil), w.machines, w.outputs, w.signer, clock.System{}, slog.New(slog.DiscardHandler), w.random,
		func(context.Context, string) error { return nil }, grants.FixedBucket(grants.WorkerBucket{}), fake.NewSecrets(nil), fake.NoHooks{},
		api.Environment, api.Documents(), app.NoTasks(), series.Discard, config,
	)}
	e.functions = stack.Functions(e.system)
	routes := append(runroutes.Routes(e.system.Definitions, e.system.Explanations), callback.Routes(e.system.Workers, e.system.Intake)...)
	for i := range w.tenants {
		handler, err := httpkit.New(httpkit.Config{
			Loopback: true, Local: port.Identity{Tenant: tenant(i), Workspace: access.Default, Scopes: access.Scopes()},
			Clock: clock.System{}, Log: slog.New(slog.DiscardHandler), AccessLevel: slog.LevelDebug, NewID: func() string { return w.random.Hex(16) },
		}, routes...)
		if err != nil {
			return nil, err
		}
		e.handlers = append(e.handlers, handler)
	}
	return e, nil
}

func tenant(i int) string { return fmt.Sprintf("tenant-%d", i) }

// openEngine opens the interpreter of the state machine, without its own limits.
func (w *world) openEngine(ctx context.Context) error {
	names := map[string]string{}
	for _, name := range statemachines.Functions() {
		names[name] = name
	}
	definition, err := statemachines.Run(names)
	if err != nil {
		return err
	}
	w.engine, err = engine.New(ctx, engine.Config{
		Clock: clock.System{}, Name: "run", Definition: []byte(definition), Concurrency: 10 * mostFunctions, Cached: 1 << 20, Random: w.random.Uint64,
		Invoke: func(ctx context.Context, function string, payload json.RawMessage) (answer json.RawMessage, err error) {
			refused := w.lambdas.run(function, func(e *environment) { answer, err = e.functions[function](ctx, payload) })
			switch {
			case refused != nil:
				return nil, &engine.InvokeError{Name: "Lambda.TooManyRequestsException", Cause: refused.Error()}
			case err != nil:
				return nil, &engine.InvokeError{Name: lambdakit.ErrorName(err), Cause: err.Error()}
			}
			return answer, nil
		},
	})
	return err
}

// close ends the executions and machines.
func (w *world) close() {
	w.stop()
	w.machines.working.Wait()
	w.running.Wait()
}

// sweep runs the sweep each minute, as its function does.
func (w *world) sweep(ctx context.Context) {
	for clock.Sleep(ctx, clock.System{}, sweepInterval) == nil {
		_ = w.lambdas.run("sweep", func(e *environment) {
			began := time.Now()
			_ = e.system.Sweep(ctx, 0)
			w.counted(func(r *Result) { r.SweepLast = max(r.SweepLast, time.Since(began)) })
		})
	}
}

// submitAll submits the runs at their times, and returns when each was answered.
func (w *world) submitAll(c Case) {
	var waiting sync.WaitGroup
	for i := range c.Rate * int(c.For/time.Second) {
		of := 0
		if i%2 == 1 {
			of = 1 + i/2%(c.Tenants-1)
		}
		waiting.Go(func() { w.submit(of, c.Work) })
		pause(time.Second / time.Duration(c.Rate))
	}
	waiting.Wait()
}

func (w *world) submit(of int, lasts time.Duration) {
	asked := time.Now()
	status, answer := w.call(of, http.MethodPost, "/v1/runs", "", fmt.Sprintf(`{"image":%q,"env":{"LASTS":"%d"}}`, service.DefaultImage, lasts.Milliseconds()))
	var accepted contract.RunAccepted
	if err := json.Unmarshal(answer, &accepted); err != nil || status != http.StatusAccepted {
		w.counted(func(r *Result) {
			r.Refused++
			r.Refusals[fmt.Sprintf("POST %d", status)]++
		})
		return
	}
	w.change(accepted.TaskID, func(m *mark) { m.tenant, m.asked, m.accepted = of, asked, time.Now() })
}

// await waits until all runs have ended, or patience has passed.
func (w *world) await() {
	for until := time.Now().Add(patience); time.Now().Before(until) && w.engine.Running() > 0; {
		pause(100 * time.Millisecond)
	}
}

// call calls the API in a function of its own.
func (w *world) call(of int, method, path, bearer, body string) (status int, answer []byte) {
	request := httptest.NewRequest(method, "http://127.0.0.1"+path, strings.NewReader(body)) //nolint:noctx // answered in this process
	request.Header.Set("Content-Type", "application/json")
	request.RemoteAddr = "127.0.0.1:1"
	if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	recorder := httptest.NewRecorder()
	if w.lambdas.run("api", func(e *environment) { e.handlers[of].ServeHTTP(recorder, request) }) != nil {
		return http.StatusServiceUnavailable, nil
	}
	return recorder.Code, recorder.Body.Bytes()
}

func (w *world) counted(change func(*Result)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.result)
}

func (w *world) change(task string, change func(*mark)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.marks[task] == nil {
		w.marks[task] = &mark{}
	}
	change(w.marks[task])
}

// consumed counts units by second.
func (w *world) consumed(_ string, wru, _ float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.units[time.Now().Unix()] += wru
}
