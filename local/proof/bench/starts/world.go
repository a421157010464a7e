package starts

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/local/proof/bench/seeded"

	"github.com/sortie-dev/sortie/functions/callback"
	"github.com/sortie-dev/sortie/functions/control"
	runroutes "github.com/sortie-dev/sortie/functions/runs"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/twin/engine"
	"github.com/sortie-dev/sortie/local/twin/flymachines"
	"github.com/sortie-dev/sortie/local/twin/flymachines/faults"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/fly"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/adapter/timer"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/grants"
	service "github.com/sortie-dev/sortie/shared/app/setting"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/setting"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
	"github.com/sortie-dev/sortie/statemachines"
)

const (
	publicURL = "http://localhost"
	// token is the token of the machines API.
	token = "machines"
	// program is the program of every machine.
	program = "worker"
	// workTime is how long a worker runs after its call started.
	workTime = 10 * time.Second
	// sweepInterval is the interval of a deployment.
	sweepInterval = time.Minute
)

// world is Sortie with the machines API in one process.
type world struct {
	machines *flymachines.Server
	calls    *calls
	runner   *timedRunner
	system   *app.System
	handler  http.Handler
	marks    *marks

	random  *seeded.Random
	db      *sqlite.DB
	engine  *engine.Engine
	stop    context.CancelFunc
	running sync.WaitGroup
}

// open starts the world in a folder. The caller closes it.
func open(ctx context.Context, dir string, apps []string) (*world, error) {
	w := &world{marks: newMarks(), random: seeded.New()}
	if err := w.openMachines(dir, apps); err != nil {
		return nil, err
	}
	if err := w.openSystem(ctx, dir, apps); err != nil {
		return nil, err
	}
	ctx, w.stop = context.WithCancel(ctx)
	w.running.Go(func() { _ = w.engine.Run(ctx) })
	w.running.Go(func() {
		for clock.Sleep(ctx, clock.System{}, sweepInterval) == nil {
			_ = w.system.Sweep(ctx, 0)
		}
	})
	return w, nil
}

// close ends the executions and the machines.
func (w *world) close() error {
	w.stop()
	w.running.Wait()
	if err := w.machines.Stop(context.Background()); err != nil {
		return err
	}
	return w.db.Close()
}

func (w *world) openMachines(dir string, apps []string) (err error) {
	w.machines, err = flymachines.Open(flymachines.Config{
		Dir: filepath.Join(dir, "machines"), Token: token, Apps: apps, Images: map[string][]string{service.DefaultImage: {program}},
		Starter:  flymachines.Functions{Clock: clock.System{}, Programs: map[string]flymachines.Function{program: w.work}},
		KeepMost: 10_000, Faults: faults.Plan{RealLimits: true}, Delays: flymachines.RealDelays(),
		Clock: clock.System{}, Random: w.random, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	w.calls = &calls{handler: w.machines}
	machines, err := fly.New(fly.Config{
		Apps: apps, Token: token, BaseURL: "http://machines", Cluster: "bench", Transport: w.calls,
		CreatesPerSecond: fly.DocumentedRate, Burst: fly.DocumentedBurst, Clock: clock.System{}, Log: slog.New(slog.DiscardHandler),
	})
	w.runner = &timedRunner{Runner: machines, marks: w.marks}
	return err
}

func (w *world) openSystem(ctx context.Context, dir string, apps []string) error {
	var err error
	if w.db, err = sqlite.Open(ctx, filepath.Join(dir, "sortie.db")); err != nil {
		return err
	}
	store, err := sqlite.NewStore(ctx, w.db, clock.System{})
	if err != nil {
		return err
	}
	config, err := service.Read(setting.Map(nil))
	if err != nil {
		return err
	}
	config.PublicURL, config.SourceURL, config.SweepInterval = publicURL, "http://source", sweepInterval
	config.Runners = platform.RunnerOffer{Runners: []string{platform.RunnerFly}, FlyApps: apps}
	executions := &lateExecutions{}
	w.system = app.NewSystem(
		delayedStore{store}, executions, timer.New(clock.System{}), w.runner, fake.NewOutputs(clock.System{}, nil), fake.NewSigner(nil, "bench"),
		clock.System{}, slog.New(slog.DiscardHandler), w.random, func(context.Context, string) error { return nil },
		grants.FixedBucket(grants.WorkerBucket{}), fake.NewSecrets(nil), fake.NoHooks{}, api.Environment, api.Documents(), app.NoTasks(), series.Discard, config,
	)
	if err := w.openEngine(ctx); err != nil {
		return err
	}
	executions.Engine = w.engine
	w.handler, err = httpkit.New(httpkit.Config{
		Loopback: true, Local: port.Identity{Tenant: access.Default, Workspace: access.Default, Scopes: access.Scopes()},
		Clock: clock.System{}, Log: slog.New(slog.DiscardHandler), AccessLevel: slog.LevelDebug, NewID: func() string { return w.random.Hex(16) },
	}, append(append(runroutes.Routes(w.system.Definitions, w.system.Explanations), callback.Routes(w.system.Workers, w.system.Intake)...), control.Routes(w.system.Pools)...)...)
	return err
}

// lateExecutions is the engine, which is created after the use cases that call it.
type lateExecutions struct{ *engine.Engine }

func (w *world) openEngine(ctx context.Context) error {
	functions := stack.Functions(w.system)
	names := map[string]string{}
	for name := range functions {
		names[name] = name
	}
	definition, err := statemachines.Run(names)
	if err != nil {
		return err
	}
	w.engine, err = engine.New(ctx, engine.Config{
		DB: w.db, Clock: clock.System{}, Name: "run", Definition: []byte(definition), Concurrency: 2000,
		Log: slog.New(slog.DiscardHandler), Random: w.random.Uint64,
		Invoke: func(ctx context.Context, function string, payload json.RawMessage) (json.RawMessage, error) {
			time.Sleep(stepDelay)
			answer, err := functions[function](ctx, payload)
			if err != nil {
				return nil, &engine.InvokeError{Name: lambdakit.ErrorName(err), Cause: err.Error()}
			}
			return answer, nil
		},
	})
	return err
}

// work is the program of a machine: a worker that uses the worker contract.
func (w *world) work(ctx context.Context, p flymachines.Program, _ io.Writer) int {
	var e contract.TaskEnvelope
	if err := json.Unmarshal([]byte(p.Env[contract.EnvelopeVariable]), &e); err != nil {
		return 1
	}
	w.marks.set(e.TaskID, func(m *mark) { m.program, m.again = time.Now(), e.Attempt > 1 })
	path := e.CallbackBaseURL + "/v1/tasks/" + e.TaskID
	report := func(what, members string) int {
		body := fmt.Sprintf(`{"attempt":%d,"workerId":%q%s}`, e.Attempt, p.MachineID, members)
		status, _ := w.call(http.MethodPost, path+"/"+what, e.TaskToken, body)
		return status
	}
	if report("started", "") != http.StatusOK {
		return 1
	}
	w.marks.set(e.TaskID, func(m *mark) { m.started = time.Now() })
	if clock.Sleep(ctx, clock.System{}, workTime) != nil {
		return 1
	}
	report("completed", `,"outcome":"SUCCEEDED"`)
	return 0
}

// call calls Sortie's API.
func (w *world) call(method, url, bearer, body string) (status int, answer []byte) {
	r, err := http.NewRequest(method, url, strings.NewReader(body)) //nolint:noctx // answered in this process
	if err != nil {
		return 0, []byte(err.Error())
	}
	r.Header.Set("Content-Type", "application/json")
	r.RemoteAddr = "127.0.0.1:1"
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	recorder := newRecorder()
	w.handler.ServeHTTP(recorder, r)
	return recorder.status, recorder.body.Bytes()
}
