// Package apitest sets up the HTTP functions for their tests: the real use cases on the given
// store, behind a real server on loopback, with a virtual clock. Executions, machines and
// objects are in memory.
//
// The client compares every response with the OpenAPI document.
package apitest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sortie-dev/sortie/local/proof/api/apicheck"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// Tenant is the tenant of all runs.
const Tenant = "tenant-a"

// Began is the initial time of the clock.
var Began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Clock is a virtual clock.
type Clock interface {
	clock.Clock
	// Advance moves the clock forward and fires the timers that are due.
	Advance(d time.Duration)
	// Next returns the time of the earliest timer; false if there is no timer.
	Next() (time.Time, bool)
}

// Parts are the adapters of a stage, as returned by NewParts. The clock must start at Began,
// and the store must use it.
type Parts struct {
	Store  port.Store
	Signer port.Signer
	Clock  Clock
}

// Settings are the settings of a server that tests can change before it starts.
type Settings struct {
	Server  httpkit.Config
	Service runs.Config
	// Tasks says how the server serves inference tasks; the default is that it accepts none.
	Tasks app.SystemTasks
	// Record gets the samples of the use cases.
	Record series.Recorder
	// Unchecked disables the comparison with the OpenAPI document. It is for routes that the
	// document does not describe.
	Unchecked bool
}

// Stage is a server with its dependencies.
type Stage struct {
	Parts
	System  *app.System
	Objects *fake.Outputs
	Secrets *fake.Secrets
	URL     string
	// Client checks each response against the OpenAPI document. It does not follow redirects.
	Client *http.Client
	// Server serves URL.
	Server *httptest.Server

	machines *machines
	logs     *logs
	// charges counts the calls of Charge.
	charges atomic.Int64
}

// document is loaded once per test binary.
var document = sync.OnceValues(func() (*apicheck.Document, error) { return apicheck.Load(contract.OpenAPI()) })

// New starts a server with the routes returned by serve.
func New(t *testing.T, parts Parts, serve func(*app.System) []httpkit.Route, change ...func(*Settings)) *Stage {
	t.Helper()
	s := &Stage{Parts: parts, Objects: fake.NewOutputs(parts.Clock, nil), Secrets: fake.NewSecrets(nil), machines: newMachines(), logs: &logs{more: make(chan struct{})}}
	log := slog.New(slog.NewJSONHandler(s.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	settings := Settings{
		Server: httpkit.Config{
			Loopback: true, Clock: s.Clock, Log: log, NewID: uuid.NewString,
			Local: port.Identity{Tenant: Tenant, Workspace: "main", Scopes: access.Ordinary()},
		},
		Service: serviceConfig(), Tasks: app.NoTasks(), Record: series.Discard,
	}
	for _, f := range change {
		f(&settings)
	}
	canary := func(ctx context.Context, token string) error {
		_, err := s.System.ReceiveCanary(ctx, token)
		return err
	}
	s.System = app.NewSystem(
		s.Store, executions{}, fake.NewSchedules(nil), s.machines, s.Objects, s.Signer, s.Clock, log, chance{}, canary,
		grants.FixedBucket(grants.WorkerBucket{
			AccountID: "account", AccessKeyID: "worker-key-id-0123", SecretAccessKey: "worker-secret-key-0123456789", Bucket: "exports",
		}), s.Secrets, fake.NoHooks{}, api.Environment, api.Documents(), settings.Tasks, settings.Record, settings.Service,
	)
	handler, err := httpkit.New(settings.Server, serve(s.System)...)
	if err != nil {
		t.Fatal(err)
	}
	s.Server = httptest.NewServer(handler)
	t.Cleanup(s.Server.Close)
	s.URL, s.Client = s.Server.URL, s.client(t, settings.Unchecked)
	return s
}

func (s *Stage) client(t *testing.T, unchecked bool) *http.Client {
	t.Helper()
	connections := &http.Transport{DisableCompression: true}
	t.Cleanup(connections.CloseIdleConnections)
	client := &http.Client{
		Transport:     connections,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if unchecked {
		return client
	}
	document, err := document()
	if err != nil {
		t.Fatal(err)
	}
	client.Transport = document.Transport(connections, func(err error) { t.Errorf("got an exchange that does not match the OpenAPI document: %v", err) })
	return client
}

func serviceConfig() runs.Config {
	return runs.Config{
		Policy: spec.Policy{
			StartTimeout: 10 * time.Minute, TimeLimit: time.Hour, HeartbeatInterval: 30 * time.Second,
			HeartbeatTimeout: 90 * time.Second, CancelGrace: 30 * time.Second, QueueTimeout: time.Hour,
			OutputRetention: 24 * time.Hour, RecordRetention: 7 * 24 * time.Hour,
			Retry: spec.Retry{
				MaxAttempts: 3, MaxFurtherStarts: 3, InitialDelay: 2 * time.Second, Multiplier: 2, MaxDelay: time.Minute,
			},
		},
		Runners: platform.RunnerOffer{Runners: []string{platform.RunnerFly, platform.RunnerKubernetes}, FlyApps: []string{"app-a", "app-b"}, Clusters: []string{"east"}},
		Pool:    "default", MaxMachines: 2, Image: "worker:test", CPUs: 1, MemoryMB: 256,
		PublicURL: "http://localhost", SourceURL: "http://localhost/source",
		PresignFor: time.Minute, DownloadRetention: time.Hour, DigestRead: 1 << 20, ArtifactLimit: 4 << 20, TokenTTL: time.Hour,
		LaunchWait: time.Second, ExitWait: time.Second, DestroyWait: time.Second,
	}
}

// chance returns random ids, and the constant 0 as Float64.
type chance struct{}

// Float64 implements runs.Random.
func (chance) Float64() float64 { return 0 }

// Hex implements runs.Random.
func (chance) Hex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // rand.Read never fails
	return hex.EncodeToString(b)
}

// Answer is a response with its whole body.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Call sends a request. headers alternates names and values; "Host" sets the host. A request
// with a body has the content type application/json unless headers sets another one.
func (s *Stage) Call(t *testing.T, method, path, body string, headers ...string) Answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			request.Host = headers[i+1]
			continue
		}
		request.Header.Del(headers[i])
		if headers[i+1] != "" {
			request.Header.Set(headers[i], headers[i+1])
		}
	}
	response, err := s.Client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return Answer{response.StatusCode, response.Header, string(text)}
}

// Decoded sends a request, requires the status, and decodes the response body. An empty body is
// the zero value.
func Decoded[T any](t *testing.T, s *Stage, method, path, body string, status int, headers ...string) (v T, header http.Header) {
	t.Helper()
	answer := s.Call(t, method, path, body, headers...)
	if answer.Status != status {
		t.Fatalf("%s %s %s: got %d %s, want %d", method, path, body, answer.Status, answer.Body, status)
	}
	if answer.Body == "" {
		return v, answer.Header
	}
	if err := json.Unmarshal([]byte(answer.Body), &v); err != nil {
		t.Fatalf("%s %s: got %s: %v", method, path, answer.Body, err)
	}
	return v, answer.Header
}

// Logs returns the log as lines of JSON.
func (s *Stage) Logs() string { return s.logs.String() }

// AwaitRequests waits until the given number of requests have ended at the server.
func (s *Stage) AwaitRequests(t *testing.T, ended int) {
	t.Helper()
	s.logs.await(t.Context(), `"msg":"request"`, ended)
}

// Run returns the record of a task.
func (s *Stage) Run(t *testing.T, taskID string) run.Run {
	t.Helper()
	r, err := s.Store.Find(context.Background(), Tenant, taskID)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
