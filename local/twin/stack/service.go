package stack

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sortie-dev/sortie/functions/activity"
	"github.com/sortie-dev/sortie/functions/callback"
	"github.com/sortie-dev/sortie/functions/console"
	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/session"
	"github.com/sortie-dev/sortie/functions/control"
	"github.com/sortie-dev/sortie/functions/download"
	"github.com/sortie-dev/sortie/functions/events"
	"github.com/sortie-dev/sortie/functions/export"
	"github.com/sortie-dev/sortie/functions/inference"
	"github.com/sortie-dev/sortie/functions/jobs"
	"github.com/sortie-dev/sortie/functions/metrics"
	"github.com/sortie-dev/sortie/functions/openai"
	"github.com/sortie-dev/sortie/functions/registry"
	runroutes "github.com/sortie-dev/sortie/functions/runs"
	"github.com/sortie-dev/sortie/functions/status"
	readers "github.com/sortie-dev/sortie/functions/stream"
	"github.com/sortie-dev/sortie/functions/tasks"
	"github.com/sortie-dev/sortie/functions/webhooks"
	"github.com/sortie-dev/sortie/local/twin/engine"
	"github.com/sortie-dev/sortie/local/twin/flymachines"
	"github.com/sortie-dev/sortie/local/twin/flymachines/environment"
	"github.com/sortie-dev/sortie/local/twin/proof"
	inferenceengine "github.com/sortie-dev/sortie/shared/adapter/engine"
	"github.com/sortie-dev/sortie/shared/adapter/keyfile"
	"github.com/sortie-dev/sortie/shared/adapter/kubernetes"
	"github.com/sortie-dev/sortie/shared/adapter/otlp"
	"github.com/sortie-dev/sortie/shared/adapter/probe"
	"github.com/sortie-dev/sortie/shared/adapter/r2"
	"github.com/sortie-dev/sortie/shared/adapter/secretfile"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/adapter/tenantaws"
	"github.com/sortie-dev/sortie/shared/adapter/timer"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/app/hooks"
	"github.com/sortie-dev/sortie/shared/app/host"
	"github.com/sortie-dev/sortie/shared/app/runs"
	service "github.com/sortie-dev/sortie/shared/app/setting"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/base/hook"
	"github.com/sortie-dev/sortie/shared/base/hook/guard"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/wrap"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
	"github.com/sortie-dev/sortie/statemachines"
)

// reportWithin is the default of Config.ReportWithin. It covers a restart.
const reportWithin = time.Minute

// startMachines serves the Fly Machines API.
func (s *Stack) startMachines(ctx context.Context) error {
	images := map[string][]string{s.config.Settings.Service.Image: append(slices.Clone(s.config.Executable), "worker")}
	for name, argv := range s.config.Images {
		if s.config.Starter == nil {
			var err error
			if argv, err = environment.ResolveCommand(argv); err != nil {
				return fmt.Errorf("cannot bind image %s: %w", name, err)
			}
		}
		images[name] = argv
	}
	starter := s.config.Starter
	if starter == nil {
		command, own := s.supervisor(ctx)
		starter = flymachines.Processes{Command: command, Otherwise: own, Clock: s.clock}
	}
	var err error
	s.machines, err = flymachines.Open(flymachines.Config{
		Dir: filepath.Join(s.addresses.Data, "machines"), Token: s.memory.renew(secretMachines, 20), Apps: []string{service.DefaultApp},
		Images: images, ExecImages: true, Wrap: true, WrapperFlags: []string{wrap.ReportFlag + "=" + cmp.Or(s.config.ReportWithin, reportWithin).String()}, Starter: starter, Clock: s.clock, Log: s.config.Log,
		Path: s.config.Path, KeepMost: 10_000,
	})
	if err != nil {
		return fmt.Errorf("cannot start the machines: %w", err)
	}
	s.addresses.Machines, err = s.serve(partMachines, s.machines)
	return err
}

// supervisor returns the command that supervises the programs of machines. own is the
// equivalent command of this program.
func (s *Stack) supervisor(ctx context.Context) (command, own []string) {
	own = append(slices.Clone(s.config.Executable), supervisor.Command)
	if len(s.config.Supervisor) > 0 {
		return s.config.Supervisor, own
	}
	small, err := flymachines.Beside(ctx, s.config.Executable[0])
	if err == nil {
		return []string{small, supervisor.Command}, own
	}
	if !errors.Is(err, fs.ErrNotExist) {
		s.config.Log.Warn("sortie-exec is not used; each start of a program takes longer", "why", err)
	}
	return own, own
}

// startService connects the use cases and serves the API. It listens first
// because workers receive the address.
func (s *Stack) startService(ctx context.Context) error {
	listener, err := s.memory.listen(partAPI, s.config.Addr)
	if err != nil {
		return err
	}
	s.addresses.URL = "http://" + s.reachable(listener.Addr())
	handler, err := s.wire(ctx, listener.Addr())
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	key := s.memory.renewKey(secretProof, proof.KeySize)
	if err := s.memory.save(); err != nil { // a client reads the key as soon as the server answers
		return errors.Join(err, listener.Close())
	}
	s.serveOn(listener, proof.Handler(key, handler))
	return nil
}

func (s *Stack) wire(ctx context.Context, bound net.Addr) (http.Handler, error) {
	if err := s.openOwner(); err != nil {
		return nil, err
	}
	config := s.serviceConfig()
	executions := &lateExecutions{}
	engines := inferenceengine.NewReplicas(s.clock, inferenceengine.Services{
		Secrets: s.secrets(), Policy: config.Engines, RootCAs: s.config.RootCAs,
	}, s.mock)
	served, err := s.wireTasks(ctx, engines)
	if err != nil {
		return nil, err
	}
	signer, err := s.wireSystem(executions, served, config)
	if err != nil {
		return nil, err
	}
	if err := s.wireWebhooks(ctx, config); err != nil {
		return nil, err
	}
	if err := s.wireEngines(ctx, engines); err != nil {
		return nil, err
	}
	if err := s.startEngine(ctx); err != nil {
		return nil, err
	}
	if err := s.wireRelay(); err != nil {
		return nil, err
	}
	if err := s.wireBus(config); err != nil {
		return nil, err
	}
	s.streams = stream.New(s.feed, s.clock, s.config.Log, chance{}.Float64, stream.Config{
		Life: config.StreamLife, Readers: config.StreamReaders, Keys: s.eventKeys, Record: s.metrics.Record,
	})
	tickets := grants.NewTokens(signer, s.clock, randomHex)
	executions.Engine = s.engine
	tokens, required, err := s.openTokens()
	if err != nil {
		return nil, err
	}
	loopback, err := httpkit.CheckAddress(bound.String(), s.config.Settings.Service.PublicURL, required)
	if err != nil {
		return nil, fmt.Errorf("cannot serve on %s: %w", bound, err)
	}
	var handler http.Handler
	pages := page.Config{
		Sessions: session.NewSessions(s.store, tokens, s.clock, rand.Reader), Clock: s.clock, Version: s.config.Version,
		API: page.InProcess(func() http.Handler { return handler }), URL: s.addresses.URL, Settings: s.config.Settings.Set,
	}
	routes := slices.Concat(
		activity.Routes(s.tally), console.Routes(pages), console.DocsRoutes(), export.Routes(s.system.Requests, s.webhooks), callback.Routes(s.system.Workers, s.system.Intake), status.Routes(s.system.Queries, status.MaxWait),
		download.Routes(s.system.Downloads),
		runroutes.Routes(s.system.Definitions, s.system.Explanations), runroutes.ChildRoutes(s.system.Children),
		tasks.Routes(s.system.Queries, s.system.Runs, s.system.Logs, tasks.Keys{Tokens: signer, Events: s.eventKeys}, s.config.Version),
		tasks.ReadyRoutes(tasks.NewReadiness(s.store.Probe, s.clock), s.config.Version),
		jobs.Routes(s.system.Jobs, s.system.Queries, s.system.Explanations), control.Routes(s.system.Pools),
		tasks.RedeliveryRoutes(s.system.Queries, s.system.Redeliveries), tasks.ReportRoutes(s.system.Reports), metrics.Routes(s.metrics.Text), webhooks.Routes(s.webhooks), webhooks.ReplayRoutes(s.replays),
		registry.Routes(s.system.Artifacts), registry.CatalogRoutes(s.system.Models), inference.Routes(s.system.Inference, s.clock), openai.Routes(s.system.Inference, s.clock), inference.BudgetRoutes(s.system.Budgets, s.clock), events.Routes(s.streams, tickets), readers.Routes(s.streams, s.clock), readers.SocketRoutes(s.streams, s.clock),
	)
	handler, err = httpkit.New(httpkit.Config{
		Tokens: tokens, Tickets: tickets.OpenTicket, Loopback: loopback, PublicHost: hostOf(config.PublicURL), MaxWrites: maxWrites,
		Local: port.Identity{Tenant: s.memory.Tenant, Workspace: s.memory.Tenant, Scopes: access.Ordinary()},
		Clock: s.clock, Log: s.config.Log, AccessLevel: slog.LevelDebug, NewID: uuid.NewString,
	}, routes...)
	if err != nil {
		return nil, fmt.Errorf("cannot serve the API: %w", err)
	}
	return handler, nil
}

// maxWrites limits concurrent submissions, and so their memory and delay. A commit takes a
// fraction of a millisecond.
const maxWrites = 1024

// serviceConfig returns the configuration with the addresses of the stack.
func (s *Stack) serviceConfig() runs.Config {
	config := s.config.Settings.Service
	if config.PublicURL == "" {
		config.PublicURL = s.addresses.URL
	}
	config.Hooks = config.Hooks.WithPlainLoopback()
	config.Engines, config.MockEngine = engineAddresses(config.Engines), true
	config.Host = host.Programs{Exec: true, Bound: s.bound(), Owner: s.owner.Subject()}
	config.FreePort, config.Loopback = s.freePort, s.loopback
	config.Runners, config.CheckPodSpec, config.CheckPodDefaults = s.offer(), kubernetes.CheckPodSpec, kubernetes.CheckPodDefaults
	config.CheckImage, config.HasSecret = s.checkImage, s.hasSecret
	config.SourceURL, config.SweepInterval = s.addresses.Source, s.config.SweepInterval
	return config
}

// secrets returns the named secrets of tenants.
func (s *Stack) secrets() secretfile.Folder {
	return secretfile.Folder(filepath.Join(s.addresses.Data, SecretsFolder))
}

// hasSecret reports whether a tenant has a secret. One that cannot be read now counts as present.
func (s *Stack) hasSecret(ctx context.Context, tenant, name string) bool {
	_, err := s.secrets().Secret(ctx, tenant, name)
	return !errors.Is(err, port.ErrNotFound)
}

// engineAddresses returns the policy that also permits the host's own addresses, over plain
// http.
func engineAddresses(p guard.Policy) guard.Policy {
	p, err := p.WithPlainLoopback().WithRules("localhost", "127.0.0.0/8", "::1")
	if err != nil {
		panic(fmt.Sprintf("malformed addresses: %v", err)) // they are constants
	}
	return p
}

// wireSystem creates the use cases on the stack's adapters. It returns the signer of their
// tokens.
func (s *Stack) wireSystem(executions port.Executions, tasks app.SystemTasks, config runs.Config) (port.Signer, error) {
	keys := s.bucketKeys(secretOwner)
	outputs, err := r2.New(r2.Config{
		Endpoint: s.addresses.S3, AccountID: "local", AccessKeyID: keys.ID, SecretAccessKey: keys.Secret,
		Uploads: bucketUploads, Accepted: bucketAccepted, Clock: s.clock,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot reach the object store: %w", err)
	}
	signer, err := keyfile.Open(filepath.Join(s.addresses.Data, KeysFile))
	if err != nil {
		return nil, fmt.Errorf("cannot open the signing keys: %w", err)
	}
	runner := s.config.Runner
	if runner == nil {
		if runner, err = s.openRunner(); err != nil {
			return nil, fmt.Errorf("cannot reach the machines: %w", err)
		}
	}
	s.schedules = timer.New(s.clock)
	worker := s.bucketKeys(secretWorker)
	bucket := grants.FixedBucket(grants.WorkerBucket{
		AccountID: "local", AccessKeyID: worker.ID, SecretAccessKey: worker.Secret,
		Bucket: bucketUploads, Endpoint: s.addresses.S3,
	})
	secrets := s.secrets()
	client := hook.New(hook.Config{Policy: config.Hooks, Clock: s.clock, RootCAs: s.config.RootCAs})
	caller := hooks.NewCalls(client, secrets, api.HookBody, config.PublicURL, s.config.Log)
	s.metrics = s.newMetrics(config)
	observers := []port.Observer{s.metrics, rawOutputs{s.machines, s.config.Log}}
	if traces := s.config.Settings.Traces; traces.Endpoint != "" {
		s.traces = otlp.New(otlp.Config{Config: traces, Version: s.config.Version, Clock: s.clock, Log: s.config.Log})
		observers = append(observers, s.traces)
	}
	s.system = app.NewSystem(
		s.store, executions, s.schedules, runner, outputs, signer, s.clock, s.config.Log, chance{}, probe.New(s.addresses.URL, runs.CanaryTask),
		bucket, secrets, caller, api.Environment, api.Documents(), tasks, s.metrics.Record, config, observers...,
	)
	s.sensors = app.Polls(s.system.Runs, secrets, tenantaws.New(config.Hooks, s.config.RootCAs), config)
	return signer, nil
}

// wireWebhooks creates the use cases of webhooks.
func (s *Stack) wireWebhooks(ctx context.Context, config runs.Config) (err error) {
	if s.feed, err = sqlite.NewFeed(ctx, s.db, sqlite.FeedConfig{Clock: s.clock, Retention: config.EventRetention}); err != nil {
		return fmt.Errorf("cannot open the streams of events: %w", err)
	}
	s.wakes = newDeliverer(s.clock, s.config.Log)
	sender := hook.NewSender(hook.Config{Policy: config.Hooks, Clock: s.clock, RootCAs: s.config.RootCAs})
	subscriptions := delivery.NewSubscriptions(s.store, s.feed, s.wakes, api.WebhookDocument, s.clock, s.config.Log, chance{})
	// One process owns the folder, and takes over the leases of the earlier process.
	s.delivery = delivery.NewDeliverer(subscriptions, s.store, sender, chance{}.Float64, "local", s.metrics.Record)
	s.dispatch, s.webhooks = delivery.NewDispatch(s.delivery, delivery.NoTurns{}), delivery.NewWebhooks(subscriptions, sender, config.Hooks)
	return nil
}

// startEngine connects the functions of the state machine to their handlers.
func (s *Stack) startEngine(ctx context.Context) error {
	functions := Functions(s.system)
	names := map[string]string{}
	for name := range functions {
		names[name] = name
	}
	definition, err := statemachines.Run(names)
	if err != nil {
		return fmt.Errorf("cannot read the state machine: %w", err)
	}
	s.engine, err = engine.New(ctx, engine.Config{
		DB: s.db, Clock: s.clock, Name: "run", Definition: []byte(definition), Log: s.config.Log,
		Invoke: func(ctx context.Context, function string, payload json.RawMessage) (json.RawMessage, error) {
			handle, ok := functions[function]
			if !ok {
				return nil, &engine.InvokeError{Name: "Lambda.ResourceNotFoundException", Cause: "unknown function " + function}
			}
			answer, err := handle(ctx, payload)
			if err != nil {
				return nil, &engine.InvokeError{Name: lambdakit.ErrorName(err), Cause: err.Error()}
			}
			return answer, nil
		},
	})
	if err != nil {
		return fmt.Errorf("cannot start the executions: %w", err)
	}
	return nil
}

// lateExecutions breaks a cycle: the engine calls the service and is created after it.
type lateExecutions struct{ *engine.Engine }

// hostOf returns the host of a URL, or "" for an invalid one.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
