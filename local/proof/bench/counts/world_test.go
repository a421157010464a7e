package counts_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/functions/callback"
	"github.com/sortie-dev/sortie/functions/export"
	"github.com/sortie-dev/sortie/functions/inference"
	"github.com/sortie-dev/sortie/functions/jobs"
	runroutes "github.com/sortie-dev/sortie/functions/runs"
	"github.com/sortie-dev/sortie/functions/status"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/keyfile"
	"github.com/sortie-dev/sortie/shared/adapter/r2"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/app/setting"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/setting"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
	"github.com/sortie-dev/sortie/statemachines"
)

const tenant = "default"

// now returns the time of the synctest bubble.
func now() time.Time { return clock.System{}.Now() }

// home is the storage and the executions of Sortie.
type home interface {
	store() port.Store
	executions() port.Executions
	// begin starts the executions and the dispatcher of inference tasks.
	begin(w *world)
	// serve returns how the use cases serve inference tasks.
	serve(w *world, config runs.Config) app.SystemTasks
	// step handles everything that is due. It returns the time of the next step, or false
	// without one.
	step() (next time.Time, ok bool)
	// relay relays the committed events.
	relay()
	// read adds the counts since the start and the stored bytes.
	read(counts)
}

// world is one Sortie with its clients, workers and machines.
type world struct {
	*testing.T
	home      home
	system    *app.System
	api       http.Handler
	machines  *machines
	objects   *objects
	functions map[string]lambdakit.TaskFunc
	signer    *signer
	eventKeys port.EventKeys
	random    *random
	log       *slog.Logger
	requests  int
}

// newWorld starts Sortie in a home.
func newWorld(t *testing.T, open func(w *world) home) *world {
	t.Helper()
	w := &world{T: t, machines: &machines{env: map[string]map[string]string{}}, random: newRandom(), log: slog.New(slog.DiscardHandler)}
	dir := t.TempDir()
	own, err := keyfile.Open(filepath.Join(dir, "keys.pem"))
	w.ok(err)
	w.signer = &signer{Signer: own}
	w.eventKeys, err = keyfile.OpenEvents(filepath.Join(dir, "event-keys.pem"))
	w.ok(err)
	w.objects = newObjects(w)
	w.home = open(w)
	config, err := service.Read(setting.Map(nil))
	w.ok(err)
	config.PublicURL, config.SourceURL, config.MockEngine = "http://sortie.example", "http://source.example", true
	w.system = app.NewSystem(
		w.home.store(), w.home.executions(), fake.NewSchedules(nil), w.machines, w.objects, w.signer, clock.System{}, w.log, w.random,
		func(context.Context, string) error { return nil },
		grants.FixedBucket(grants.WorkerBucket{AccountID: "account", AccessKeyID: "worker-key-id-0123", SecretAccessKey: "worker-secret-key-0123456789", Bucket: "uploads"}),
		fake.NewSecrets(nil), fake.NoHooks{}, api.Environment, api.Documents(), w.home.serve(w, config), series.Discard, config,
	)
	w.functions = stack.Functions(w.system)
	w.home.begin(w)
	routes := export.Routes(w.system.Requests, nil)
	for _, more := range [][]httpkit.Route{
		callback.Routes(w.system.Workers, w.system.Intake), status.Routes(w.system.Queries, status.MaxWait), runroutes.Routes(w.system.Definitions, w.system.Explanations),
		jobs.Routes(w.system.Jobs, w.system.Queries, w.system.Explanations), inference.Routes(w.system.Inference, clock.System{}),
	} {
		routes = append(routes, more...)
	}
	w.api, err = httpkit.New(httpkit.Config{
		Loopback: true, Clock: clock.System{}, Log: w.log, NewID: func() string { return w.random.Hex(16) },
		Local: port.Identity{Tenant: tenant, Workspace: tenant, Scopes: access.Scopes()},
	}, routes...)
	w.ok(err)
	return w
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// machine returns the definition of the runs' state machine, with functions under their
// own names.
func (w *world) machine() []byte {
	names := map[string]string{}
	for _, name := range statemachines.Functions() {
		names[name] = name
	}
	text, err := statemachines.Run(names)
	w.ok(err)
	return []byte(text)
}

// invoke calls a function for the state machine.
func (w *world) invoke(ctx context.Context, function string, payload json.RawMessage) (json.RawMessage, error) {
	return w.functions[function](ctx, payload)
}

// call makes an HTTP request and decodes its answer.
func (w *world) call(method, path, token, body string, into any) {
	w.Helper()
	w.requests++
	request := httptest.NewRequestWithContext(w.Context(), method, "http://127.0.0.1"+path, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	recorder := httptest.NewRecorder()
	w.api.ServeHTTP(recorder, request)
	if recorder.Code >= http.StatusMultipleChoices {
		w.Fatalf("%s %s: got %d %s", method, path, recorder.Code, recorder.Body)
	}
	if into != nil {
		w.ok(json.Unmarshal(recorder.Body.Bytes(), into))
	}
}

// finish drives the state machine and the workers until the run has ended.
func (w *world) finish(task string) run.Run {
	w.Helper()
	for limit := now().Add(time.Hour); now().Before(limit); {
		next, ok := w.home.step()
		if waiting := w.machines.waiting; len(waiting) > 0 {
			w.machines.waiting = nil
			for _, one := range waiting {
				w.work(one)
			}
			continue
		}
		r, err := w.home.store().Find(w.Context(), tenant, task)
		w.ok(err)
		if r.State.Terminal() {
			return r
		}
		pause := 100 * time.Millisecond // for the dispatcher
		if ok {
			pause = min(pause, max(0, next.Sub(now())))
		}
		w.ok(clock.Sleep(w.Context(), clock.System{}, pause))
	}
	w.Fatalf("run %s has not ended", task)
	return run.Run{}
}

// work runs the worker of a machine: it reports its start, uploads an output and reports its
// success.
func (w *world) work(one *port.MachineStatus) {
	w.Helper()
	var envelope contract.TaskEnvelope
	w.ok(json.Unmarshal([]byte(w.machines.env[one.ID][contract.EnvelopeVariable]), &envelope))
	report := func(route string, body any) {
		text, err := json.Marshal(body)
		w.ok(err)
		w.call(http.MethodPost, "/v1/tasks/"+envelope.TaskID+"/"+route, envelope.TaskToken, string(text), nil)
	}
	report("started", contract.TaskStarted{Attempt: envelope.Attempt, WorkerID: one.ID, StartedAt: now()})
	done := contract.TaskCompleted{Attempt: envelope.Attempt, WorkerID: one.ID, Outcome: contract.OutcomeSucceeded, CompletedAt: now()}
	if envelope.Program != nil {
		done.Exit = &contract.Exit{}
	} else {
		const document = "<mods/>"
		key, size := "exports/"+envelope.TaskID+"/mods.xml", int64(len(document))
		w.objects.Store(port.Uploads, key, "application/xml", document)
		done.Output = &contract.TaskOutput{OutputPath: key, FileName: "mods.xml", ByteSize: &size}
		done.Metrics = json.RawMessage(`{"entities_exported":72,"total_time_ms":2934}`)
	}
	report("completed", done)
	w.machines.end(one)
}

// read returns the counts since the start and the stored bytes.
func (w *world) read() counts {
	c := counts{}
	c[signatures] = float64(w.signer.count)
	c[httpCalls] = float64(w.requests)
	c[objectCalls] = float64(w.objects.calls)
	c[platformCalls] = float64(w.machines.calls)
	c[machinesStarted] = float64(len(w.machines.made))
	w.home.read(c)
	return c
}

// signer counts the signatures of tokens.
type signer struct {
	port.Signer
	count int
}

// Sign implements port.Signer.
func (s *signer) Sign(ctx context.Context, keyID string, message []byte) ([]byte, error) {
	s.count++
	return s.Signer.Sign(ctx, keyID, message)
}

// objects is an object store in memory whose URLs are signed like those of the real store. It
// counts the calls to the store.
type objects struct {
	*fake.Outputs
	signs *r2.Outputs
	calls int
}

func newObjects(w *world) *objects {
	o := &objects{}
	o.Outputs = fake.NewOutputs(clock.System{}, func(fake.Call) fake.Fate { o.calls++; return fake.Applied })
	var err error
	o.signs, err = r2.New(r2.Config{
		AccountID: "account", AccessKeyID: "key-id", SecretAccessKey: "secret", Uploads: "uploads", Accepted: "accepted", Clock: clock.System{},
	})
	w.ok(err)
	return o
}

// PresignGet implements port.Outputs.
func (o *objects) PresignGet(ctx context.Context, key, disposition, contentType string, ttl time.Duration) (string, error) {
	return o.signs.PresignGet(ctx, key, disposition, contentType, ttl)
}

// PresignPut implements port.Outputs.
func (o *objects) PresignPut(ctx context.Context, key, contentType string, ttl time.Duration) (string, error) {
	return o.signs.PresignPut(ctx, key, contentType, ttl)
}

// random returns the same sequence in each run of the test.
type random struct {
	mu   sync.Mutex
	from *rand.ChaCha8
}

func newRandom() *random { return &random{from: rand.NewChaCha8([32]byte{1})} }

// Float64 implements runs.Random.
func (r *random) Float64() float64 { return 0.5 }

// Hex implements runs.Random.
func (r *random) Hex(n int) string {
	var b bytes.Buffer
	_, _ = io.CopyN(&b, r, int64(n)) // it never fails
	return hex.EncodeToString(b.Bytes())
}

// Read implements io.Reader.
func (r *random) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.from.Read(p)
}

func (r *random) number() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.from.Uint64()
}
