package growth

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/functions/callback"
	"github.com/sortie-dev/sortie/functions/control"
	"github.com/sortie-dev/sortie/functions/export"
	"github.com/sortie-dev/sortie/functions/jobs"
	runroutes "github.com/sortie-dev/sortie/functions/runs"
	"github.com/sortie-dev/sortie/functions/status"
	"github.com/sortie-dev/sortie/functions/tasks"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/twin/engine"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/keyfile"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/app/runs"
	service "github.com/sortie-dev/sortie/shared/app/setting"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/setting"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
	"github.com/sortie-dev/sortie/statemachines"
)

// start is the time at which the first home of a folder opens.
var start = time.Date(2027, 3, 1, 8, 0, 0, 0, time.UTC)

// origin is the tenant whose runs are copied.
const origin = "tenant-00000"

// retention is longer than any measurement.
const retention = 30 * 24 * time.Hour

// home is Sortie in a folder: SQLite, the local engine and the routes, without loops. It is not
// safe for concurrent use, except for call.
type home struct {
	dir      string
	clock    *clock.Virtual
	db       *sqlite.DB // nil on DynamoDB
	records  *sqlite.Store
	store    port.Store
	feed     *sqlite.Feed
	engine   *engine.Engine
	system   *app.System
	relay    *delivery.Relay
	machines *machines
	random   *random
	log      *slog.Logger
	routes   []httpkit.Route
	mu       sync.Mutex
	handlers map[string]http.Handler // by tenant
	seen     counter
	consumed *consumption // nil on SQLite
}

// openHome opens a folder with the machines that an earlier home has started. A limit of 0 is no
// limit.
func openHome(ctx context.Context, dir string, m *machines, limit int, seed uint64) (h *home, err error) {
	h = &home{dir: dir, clock: m.clock, machines: m, random: newRandom(seed), log: slog.New(slog.DiscardHandler), handlers: map[string]http.Handler{}}
	if h.db, err = sqlite.Open(ctx, filepath.Join(dir, stack.RecordsFile)); err != nil {
		return nil, err
	}
	h.db.Observe(h.seen.add)
	if err := h.openRecords(ctx); err != nil {
		return nil, errors.Join(err, h.db.Close())
	}
	if err := h.wire(ctx, limit); err != nil {
		return nil, errors.Join(err, h.db.Close())
	}
	return h, nil
}

// openRecords opens the tables of the database.
func (h *home) openRecords(ctx context.Context) (err error) {
	if h.records, err = sqlite.NewStore(ctx, h.db, h.clock); err != nil {
		return err
	}
	h.records.EncodeEvents(api.Published("https://sortie.example.org").Encode)
	h.store = h.records
	h.feed, err = sqlite.NewFeed(ctx, h.db, sqlite.FeedConfig{Clock: h.clock, Retention: retention, Random: h.random.number})
	return err
}

// wire creates the use cases, the engine, the relay and the routes.
func (h *home) wire(ctx context.Context, limit int) error {
	signer, err := keyfile.Open(filepath.Join(h.dir, stack.KeysFile))
	if err != nil {
		return err
	}
	eventKeys, err := keyfile.OpenEvents(filepath.Join(h.dir, stack.EventKeysFile))
	if err != nil {
		return err
	}
	executions := &lateEngine{}
	if err := h.startSystem(executions, signer, limit); err != nil {
		return err
	}
	if err := h.startEngine(ctx); err != nil {
		return err
	}
	executions.Engine = h.engine
	if h.feed != nil {
		published := api.Published("https://sortie.example.org")
		published.Bare = true // as in the stack
		h.relay = delivery.NewRelay(h.feed, eventKeys, delivery.NoTurns{}, h.clock, h.log, published, series.Discard)
	}
	h.routes = slices.Concat(
		export.Routes(h.system.Requests, nil), callback.Routes(h.system.Workers, h.system.Intake), status.Routes(h.system.Queries, status.MaxWait),
		runroutes.Routes(h.system.Definitions, h.system.Explanations), jobs.Routes(h.system.Jobs, h.system.Queries, h.system.Explanations), control.Routes(h.system.Pools),
		tasks.Routes(h.system.Queries, h.system.Runs, h.system.Logs, tasks.Keys{Tokens: signer, Events: eventKeys}, ""),
	)
	return nil
}

// startSystem creates the use cases on fakes of what is not measured.
func (h *home) startSystem(executions port.Executions, signer port.Signer, limit int) error {
	config, err := service.Read(setting.Map(nil))
	if err != nil {
		return err
	}
	config.PublicURL, config.SourceURL, config.MaxMachines, config.QueueLimit = "http://sortie.example", "http://source.example", limit, 0
	h.system = app.NewSystem(
		h.store, executions, fake.NewSchedules(nil), h.machines, fake.NewOutputs(h.clock, nil), signer, h.clock, h.log, h.random,
		h.canary,
		grants.FixedBucket(grants.WorkerBucket{AccountID: "account", AccessKeyID: "worker-key-id-0123", SecretAccessKey: "worker-secret-key-0123456789", Bucket: "uploads"}),
		fake.NewSecrets(nil), fake.NoHooks{}, api.Environment, api.Documents(), app.NoTasks(), series.Discard, config,
	)
	return nil
}

// canary sends a heartbeat to the API, as adapter probe does.
func (h *home) canary(ctx context.Context, token string) error {
	const body = `{"attempt":1,"workerId":"canary"}`
	return h.callAs(ctx, origin, token, http.MethodPost, "/v1/tasks/"+runs.CanaryTask+"/heartbeat", body, nil)
}

// lateEngine is the engine, which is created after the use cases that it calls.
type lateEngine struct{ *engine.Engine }

// startEngine opens the engine with the functions of the use cases.
func (h *home) startEngine(ctx context.Context) (err error) {
	functions, names := stack.Functions(h.system), map[string]string{}
	for _, name := range statemachines.Functions() {
		names[name] = name
	}
	definition, err := statemachines.Run(names)
	if err != nil {
		return err
	}
	h.engine, err = engine.New(ctx, engine.Config{
		DB: h.db, Clock: h.clock, Name: "run", Definition: []byte(definition), Random: h.random.number,
		Invoke: func(ctx context.Context, function string, payload json.RawMessage) (json.RawMessage, error) {
			answer, err := functions[function](ctx, payload)
			if err != nil {
				return nil, &engine.InvokeError{Name: lambdakit.ErrorName(err), Cause: err.Error()}
			}
			return answer, nil
		},
	})
	return err
}

// close closes the folder, which another home may open then.
func (h *home) close() error { return h.db.Close() }

// settle handles everything that is due, and relays its events.
func (h *home) settle(ctx context.Context) error {
	if _, err := h.engine.Step(ctx); err != nil {
		return err
	}
	if h.relay == nil {
		return nil
	}
	_, err := h.relay.Drain(ctx, h.records, func(c port.StoredChange) delivery.Change {
		change := delivery.Change{ID: c.ID, At: c.At}
		change.Change, change.Err = sqlite.ChangeOf(c.Record)
		return change
	}, nil)
	return err
}

// handler returns the API as a tenant sees it.
func (h *home) handler(tenant string) (http.Handler, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if handler, ok := h.handlers[tenant]; ok {
		return handler, nil
	}
	handler, err := httpkit.New(httpkit.Config{
		Loopback: true, Clock: h.clock, Log: h.log, NewID: func() string { return h.random.Hex(16) },
		Local: port.Identity{Tenant: tenant, Workspace: tenant, Subject: "measurement", Scopes: access.Scopes()},
	}, h.routes...)
	h.handlers[tenant] = handler
	return handler, err
}

// call makes an HTTP request of a tenant and decodes its answer.
func (h *home) call(ctx context.Context, tenant, method, path, body string, into any) error {
	return h.callAs(ctx, tenant, "", method, path, body, into)
}

// callAs is like call, with a token unless that is empty.
func (h *home) callAs(ctx context.Context, tenant, token, method, path, body string, into any) error {
	handler, err := h.handler(tenant)
	if err != nil {
		return err
	}
	request := httptest.NewRequestWithContext(ctx, method, "http://127.0.0.1"+path, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	if recorder.Code >= http.StatusMultipleChoices {
		return fmt.Errorf("%s %s: got %d %s", method, path, recorder.Code, recorder.Body)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(recorder.Body.Bytes(), into)
}

// random returns the same sequence for each seed.
type random struct {
	mu   sync.Mutex
	from *rand.ChaCha8
}

func newRandom(seed uint64) *random {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	return &random{from: rand.NewChaCha8(key)}
}

// Float64 implements runs.Random.
func (r *random) Float64() float64 { return 0.5 }

// Hex implements runs.Random.
func (r *random) Hex(n int) string {
	var b strings.Builder
	for b.Len() < 2*n {
		fmt.Fprintf(&b, "%016x", r.number())
	}
	return b.String()[:2*n]
}

func (r *random) number() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.from.Uint64()
}
