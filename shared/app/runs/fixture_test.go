package runs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sortie-dev/sortie/functions/steps"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/proof/port/sqlitetest"
	"github.com/sortie-dev/sortie/local/twin/engine"
	"github.com/sortie-dev/sortie/shared/adapter/keyfile"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
	"github.com/sortie-dev/sortie/statemachines"
)

// fixture runs the use cases on the SQLite store and the local engine, with a
// runner, a bucket and a clock that the test controls. Everything runs in the test's
// goroutine.
type fixture struct {
	*testing.T
	clock   *clock
	db      *sqlite.DB
	store   *store
	engine  *engine.Engine
	calls   *executions
	runner  *runner
	outputs *outputs
	signer  port.Signer
	random  countingRand
	bucket  grants.WorkerBucket
	hooks   hooks
	secrets *fake.Secrets
	// schedules keeps the wake-ups of jobs, which the tests deliver.
	schedules *fake.Schedules
	// assigned is the assignment of the last launch.
	assigned runs.Assignment
	service  system
	config   runs.Config
	log      *bytes.Buffer
	// probe runs before a canary is received; its error fails the canary.
	probe func(context.Context) error
	// acknowledges: another service answers canaries.
	acknowledges bool

	// before runs once before the function of a step; fail lists the errors of the
	// next calls of a step.
	before map[run.Step]func(runs.StepInput)
	fail   map[run.Step][]string
	// entered lists the states that executions entered.
	entered []string
}

var epoch = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

var client = port.Identity{Tenant: "local", Workspace: "local", Subject: "localhost"}

func setup(t *testing.T, change ...func(*runs.Config)) *fixture {
	t.Helper()
	h := &fixture{
		T: t, clock: &clock{now: epoch}, log: &bytes.Buffer{},
		before: map[run.Step]func(runs.StepInput){}, fail: map[run.Step][]string{},
	}
	h.runner, h.outputs, h.secrets = newRunner(h), newOutputs(h), fake.NewSecrets(nil)
	h.schedules = fake.NewSchedules(nil)
	h.config = runs.Config{
		Policy: spec.Policy{
			StartTimeout: time.Minute, TimeLimit: 10 * time.Minute, HeartbeatInterval: 30 * time.Second,
			HeartbeatTimeout: 90 * time.Second, CancelGrace: 10 * time.Second, QueueTimeout: time.Hour,
			OutputRetention: 24 * time.Hour, RecordRetention: 48 * time.Hour,
			Retry: spec.Retry{MaxAttempts: 2, MaxFurtherStarts: 1, InitialDelay: 2 * time.Second, Multiplier: 2, MaxDelay: time.Minute},
		},
		Pool: "default", MaxMachines: 4, Image: "worker", CPUs: 1, MemoryMB: 256,
		PublicURL: "http://sortie", SourceURL: "http://source", DownloadRetention: time.Hour, ArtifactLimit: 1 << 20, TokenTTL: time.Hour,
		LaunchWait: 10 * time.Second, ExitWait: 5 * time.Second, DestroyWait: 10 * time.Second,
	}
	for _, c := range change {
		c(&h.config)
	}
	h.wire()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log:\n%s", h.log)
		}
	})
	return h
}

// wire connects the parts.
func (h *fixture) wire() {
	h.Helper()
	dir := sqlitetest.Folder(h)
	db, err := sqlitetest.Open(h.Context(), filepath.Join(dir, "sortie.db"))
	h.ok(err)
	h.Cleanup(func() { _ = db.Close() })
	h.db = db
	inner, err := sqlite.NewStore(h.Context(), db, h.clock)
	h.ok(err)
	h.signer, err = keyfile.Open(filepath.Join(dir, "keys.pem"))
	h.ok(err)
	h.store, h.calls = &store{Store: inner}, &executions{lostRequests: map[string]int{}, lostAnswers: map[string]int{}, clock: h.clock}
	h.service = h.system(wiring{log: slog.New(slog.NewTextHandler(h.log, nil))})
	functions := steps.Handlers(h.service.System)
	names := map[string]string{}
	for _, name := range statemachines.Functions() {
		names[name] = strings.ToLower(name)
	}
	definition, err := statemachines.Run(names)
	h.ok(err)
	h.engine, err = engine.New(h.Context(), engine.Config{
		DB: db, Clock: h.clock, Name: "run", MaxEvents: h.config.MaxEvents, Definition: []byte(definition), Random: h.number(),
		Entered: func(_, state string) { h.entered = append(h.entered, state) },
		Invoke: func(ctx context.Context, function string, payload json.RawMessage) (json.RawMessage, error) {
			return h.invoke(ctx, functions[function], payload)
		},
	})
	h.ok(err)
	h.calls.Engine = h.engine
}

// number returns a source of distinct numbers.
func (h *fixture) number() func() uint64 {
	n := uint64(0)
	return func() uint64 { n += 0x9e3779b97f4a7c15; return n }
}

func (h *fixture) invoke(ctx context.Context, f lambdakit.TaskFunc, payload json.RawMessage) (json.RawMessage, error) {
	var in runs.StepInput
	h.ok(json.Unmarshal(payload, &in))
	if do := h.before[in.Step]; do != nil {
		delete(h.before, in.Step)
		do(in)
	}
	if names := h.fail[in.Step]; len(names) > 0 {
		h.fail[in.Step] = names[1:]
		return nil, &engine.InvokeError{Name: names[0], Cause: "injected"}
	}
	answer, err := f(ctx, payload)
	if err != nil {
		return nil, &engine.InvokeError{Name: lambdakit.ErrorName(err), Cause: err.Error()}
	}
	return answer, nil
}

func (h *fixture) ok(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// equal fails the test if the values differ.
func (h *fixture) equal(want, got any) {
	h.Helper()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(fault.Fault{})); diff != "" {
		h.Fatalf("want -, got +\n%s", diff)
	}
}

// post accepts an export and runs everything that is due.
func (h *fixture) post() string {
	h.Helper()
	task := h.accept()
	h.step()
	return task
}

func (h *fixture) accept() string {
	h.Helper()
	r, _, err := h.service.Export(h.Context(), exportCall())
	h.ok(err)
	return r.TaskID
}

// step runs everything that is due now.
func (h *fixture) step() {
	h.Helper()
	_, err := h.engine.Step(h.Context())
	h.ok(err)
}

// advance advances the clock and runs everything that becomes due at its time.
func (h *fixture) advance(d time.Duration) {
	h.Helper()
	until := h.clock.now.Add(d)
	for {
		due, ok := h.engine.NextDue()
		if !ok || due.After(until) {
			break
		}
		h.clock.to(due)
		h.step()
	}
	h.clock.to(until)
	h.step()
}

func (h *fixture) sweep() {
	h.Helper()
	h.ok(h.service.Sweep(h.Context(), 0))
	h.step()
}

func (h *fixture) record(task string) run.Run {
	h.Helper()
	r, err := h.store.Find(h.Context(), client.Tenant, task)
	h.ok(err)
	return r
}

// wantState fails the test if the run is in another state.
func (h *fixture) wantState(task string, state run.State) run.Run {
	h.Helper()
	r := h.record(task)
	if r.State != state {
		h.Fatalf("got state %s (%+v), want %s\nevents: %s", r.State, r.Fault, state, h.eventsOf(task))
	}
	return r
}

// eventsOf returns the types of a run's events in order, with their faults. It fails
// the test if their numbers have gaps or if the run ends twice.
func (h *fixture) eventsOf(task string) string {
	h.Helper()
	r := h.record(task)
	events, err := h.store.Events(h.Context(), r.Ref(), 0, 1000)
	h.ok(err)
	var words []string
	ends := 0
	for i, e := range events {
		if e.Seq != i+1 {
			h.Errorf("got event number %d, want %d", e.Seq, i+1)
		}
		if e.State.Terminal() && e.From != e.State {
			ends++
		}
		word := strings.TrimPrefix(string(e.Type), "job.")
		if e.Fault != nil {
			word += ":" + string(e.Fault.Code)
		}
		words = append(words, word)
	}
	if ends > 1 || len(events) != r.EventCount {
		h.Errorf("got %d terminal events of %d, want at most 1 of %d", ends, len(events), r.EventCount)
	}
	return strings.Join(words, " ")
}

// wantEvents fails the test if the run's events do not contain a part.
func (h *fixture) wantEvents(task, part string) {
	h.Helper()
	if events := h.eventsOf(task); !strings.Contains(" "+events+" ", " "+part+" ") {
		h.Errorf("got events %q, want %q in them", events, part)
	}
}

// execution describes the execution of a run's start.
func (h *fixture) execution(task string, start int) port.Execution {
	h.Helper()
	x, err := h.engine.Describe(h.Context(), run.ExecutionName(h.record(task).Ref(), start))
	h.ok(err)
	return x
}

// success is a callback without an output.
func success() contract.Callback { return contract.Callback{Status: contract.StatusSuccess} }

// report sends the callback of the worker in a machine, as the HTTP handler does.
func (h *fixture) report(m *machine, body contract.Callback) error {
	h.Helper()
	address, err := url.Parse(m.spec.Env["CALLBACK_URL"])
	h.ok(err)
	ctx := h.Context()
	claims, err := h.service.AuthenticateCallback(ctx, address.Query().Get("token"), m.spec.Env["TASK_ID"])
	if err != nil {
		return err
	}
	return h.service.Callback(ctx, claims, body)
}

// clock advances to the end of each timer, which fires at once.
type clock struct {
	now time.Time
	// during runs once when the next timer starts.
	during func()
}

// Now implements clock.Clock.
func (c *clock) Now() time.Time { return c.now }

// NewTimer implements clock.Clock.
func (c *clock) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	if do := c.during; do != nil {
		c.during = nil
		do()
	}
	c.to(c.now.Add(d))
	fired := make(chan time.Time, 1)
	fired <- c.now
	return fired, func() {}
}

func (c *clock) to(at time.Time) {
	if at.After(c.now) {
		c.now = at
	}
}
