package roles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/sortie-dev/sortie/local/proof/bootstraps"
	"github.com/sortie-dev/sortie/local/proof/localstack/fixtures"
	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/local/proof/roles/deployment"
	"github.com/sortie-dev/sortie/local/proof/suite/clients"
	"github.com/sortie-dev/sortie/local/twin/engine"
	"github.com/sortie-dev/sortie/local/twin/s3"
	"github.com/sortie-dev/sortie/shared/adapter/secrets"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/statemachines"
)

// The tokens of a home: of the client, the Machines API and the canary.
const (
	ClientToken   = "roles-client-token"
	MachinesToken = "roles-machines-token"
	canaryToken   = "roles-canary-token"
)

// Others are the additional clients of a home.
var Others = clients.Others{Stranger: "roles-stranger-token", Reader: "roles-reader-token"}

// Config configures a home.
type Config struct {
	// Dir is a folder for the data.
	Dir string
	// Settings are variables of the functions that read the service's settings.
	Settings map[string]string
	// Trusted is a PEM file with certificates that the functions trust.
	Trusted string
	// Fixtures configures the machines and the collection. Start sets their addresses and the
	// token.
	Fixtures fixtures.Config
	// Log gets the log lines of the functions and of the home.
	Log io.Writer
}

// Home is a deployed stage on this host. Its exported fields do not change.
type Home struct {
	// URL is the address of the API, including the stage.
	URL string
	// Machines is the address of the Machines API.
	Machines string
	// S3 is the address of the buckets. Owner are Sortie's keys.
	S3    string
	Owner s3.Keys

	deployed  deployed
	config    Config
	log       *slog.Logger
	iam       *awsfake.IAM
	table     *awsfake.DynamoDB
	states    *awsfake.StepFunctions
	schedules *awsfake.Scheduler
	engine    *engine.Engine
	services  *services
	lambda    *lambda
	bucket    *s3.Server
	around    *fixtures.Fixtures
	// api serves the clients, cloud the AWS calls, and runtime the functions.
	api, cloud, runtime *httptest.Server
	source              string

	stop  context.CancelFunc
	loops sync.WaitGroup
	// sweeps is held by a sweep, and by HoldSweeps.
	sweeps sync.Mutex
	mu     sync.Mutex
	// broken are the failures of the home itself.
	broken []error
	// entered counts the calls of each state.
	entered map[string]int
}

// deployed is the deployment with accessors for the stage.
type deployed struct{ deployment.Deployment }

// streamLabel is the time in the ARN of the table's stream.
const streamLabel = "2026-01-02T03:04:05.000"

func (d deployed) variable(name string) string {
	for _, f := range d.Functions {
		if value := f.Environment[name]; value != "" {
			return value
		}
	}
	return ""
}

func (d deployed) table() string { return d.variable("SORTIE_TABLE") }
func (d deployed) tableARN() string {
	return "arn:aws:dynamodb:" + awsfake.Region + ":" + awsfake.Account + ":table/" + d.table()
}
func (d deployed) stage() string { return d.variable("SORTIE_STAGE") }

func queueARN(address string) string {
	return "arn:aws:sqs:" + awsfake.Region + ":" + awsfake.Account + ":" + path.Base(address)
}

// Start builds the functions and starts a home. The caller ends it with Stop.
func Start(ctx context.Context, c Config) (*Home, error) {
	made, err := deployment.Read()
	if err != nil {
		return nil, err
	}
	h := &Home{deployed: deployed{made}, config: c, log: slog.New(slog.NewTextHandler(c.Log, nil)), Owner: s3.Keys{ID: "owner-key", Secret: "owner-secret"}, entered: map[string]int{}}
	ctx, h.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := h.start(ctx); err != nil {
		return nil, errors.Join(err, h.Stop(ctx))
	}
	h.startLoops(ctx)
	return h, nil
}

func (h *Home) start(ctx context.Context) error {
	for _, part := range []func(context.Context) error{h.startAWS, h.startBuckets, h.startAround, h.startLambda, h.fill} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// startAWS starts the services, without the functions of their state machine.
func (h *Home) startAWS(ctx context.Context) error {
	roles := map[string]awsfake.Role{}
	for name, f := range h.deployed.Functions {
		roles[name] = f.Role
	}
	machine := h.deployed.variable("SORTIE_STATE_MACHINE")
	var err error
	if h.iam, err = awsfake.NewIAM(roles, machine); err != nil {
		return err
	}
	h.table = awsfake.NewDynamoDB(awsfake.DynamoDBConfig{Clock: clock.System{}})
	if err := awsfake.CreateTable(ctx, h.table.AWS(), h.deployed.table()); err != nil {
		return err
	}
	names := map[string]string{}
	for _, name := range statemachines.Functions() {
		names[name] = strings.ToLower(name)
	}
	definition, err := statemachines.Run(names)
	if err != nil {
		return err
	}
	h.engine, err = engine.New(ctx, engine.Config{
		Clock: clock.System{}, Name: path.Base(strings.ReplaceAll(machine, ":", "/")), Definition: []byte(definition), Log: h.log, Invoke: h.step,
	})
	if err != nil {
		return err
	}
	h.states, err = awsfake.NewStepFunctions(awsfake.StepFunctionsConfig{
		Clock: clock.System{}, Executions: h.engine, Name: path.Base(strings.ReplaceAll(machine, ":", "/")),
	})
	if err != nil {
		return err
	}
	h.schedules = awsfake.NewScheduler(clock.System{}, h.deployed.variable("SORTIE_SCHEDULE_GROUP"), nil)
	if h.services, err = newServices(); err != nil {
		return err
	}
	h.services.call = func(function string, payload []byte) {
		h.loops.Go(func() { h.event(ctx, function, payload) })
	}
	h.cloud = httptest.NewServer(&cloud{iam: h.iam, table: h.table, states: h.states, schedules: h.schedules, services: h.services})
	return nil
}

func (h *Home) startBuckets(ctx context.Context) error {
	var err error
	h.bucket, err = s3.Start(ctx, s3.Config{
		Dir: filepath.Join(h.config.Dir, "s3"), Uploads: h.deployed.variable("SORTIE_UPLOADS_BUCKET"), Accepted: h.deployed.variable("SORTIE_ACCEPTED_BUCKET"),
		Owner: h.Owner, Worker: s3.Keys{ID: "worker-key", Secret: "worker-secret"}, Log: h.log,
	})
	if err == nil {
		h.S3 = h.bucket.URL()
	}
	return err
}

// startAround starts the machines and the collection.
func (h *Home) startAround(ctx context.Context) error {
	around := h.config.Fixtures
	around.Dir, around.Clock, around.Log, around.Token, around.Wrap = filepath.Join(h.config.Dir, "machines"), clock.System{}, h.log, MachinesToken, true
	for _, addr := range []*string{&around.Machines, &around.Source} {
		free, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("cannot find a port: %w", err)
		}
		*addr = free.Addr().String()
		if err := free.Close(); err != nil {
			return fmt.Errorf("cannot find a port: %w", err)
		}
	}
	h.Machines, h.source = "http://"+around.Machines, "http://"+around.Source
	var err error
	h.around, err = fixtures.Start(ctx, around)
	return err
}

// startLambda builds the functions and starts serving them and the API.
func (h *Home) startLambda(ctx context.Context) error {
	h.lambda = &lambda{functions: map[string]*function{}, processes: map[string]*process{}, log: h.config.Log}
	h.runtime = httptest.NewServer(h.lambda)
	h.lambda.address = strings.TrimPrefix(h.runtime.URL, "http://")
	h.api = httptest.NewServer(gateway{lambda: h.lambda, stage: h.deployed.stage(), routes: h.deployed.Routes})
	h.URL = h.api.URL + "/" + h.deployed.stage()
	programs := map[string]string{}
	for name, f := range h.deployed.Functions {
		programs[name] = name
		if f.Environment["SORTIE_STEP"] != "" {
			programs[name] = "steps"
		}
	}
	folder, err := bootstraps.Build(ctx, slices.Compact(slices.Sorted(maps.Values(programs)))...)
	if err != nil {
		return err
	}
	for name, f := range h.deployed.Functions {
		file := filepath.Join(folder, programs[name], "bootstrap")
		h.lambda.functions[name] = &function{Function: f, program: file, env: h.environment(name, f)}
	}
	return nil
}

// environment returns the variables of a function: the variables in the template, with the
// addresses of the home, and the variables that Lambda adds.
func (h *Home) environment(name string, f deployment.Function) []string {
	env := maps.Clone(f.Environment)
	if env["SOURCE_API_URL"] != "" { // the function reads the service's settings
		maps.Copy(env, h.config.Settings)
	}
	for variable, address := range map[string]string{
		"SOURCE_API_URL": h.source, "SORTIE_PUBLIC_URL": h.URL,
		"SORTIE_SOCKETS_URL": h.cloud.URL + "/execute-api/" + strings.Replace(strings.TrimPrefix(env["SORTIE_SOCKETS_URL"], "https://"), ".execute-api."+awsfake.Region+".amazonaws.com", "", 1),
	} {
		if env[variable] != "" {
			env[variable] = address
		}
	}
	if env["SORTIE_SECRET_FLY"] != "" {
		env["SORTIE_FLY_URL"] = h.Machines
	}
	maps.Copy(env, map[string]string{
		"AWS_REGION": awsfake.Region, "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST", "AWS_ENDPOINT_URL": h.cloud.URL,
		"AWS_ACCESS_KEY_ID": name, "AWS_SECRET_ACCESS_KEY": "secret", "SSL_CERT_FILE": h.config.Trusted, "GOMAXPROCS": "2",
	})
	list := make([]string, 0, len(env))
	for variable, value := range env {
		list = append(list, variable+"="+value)
	}
	return list
}

// fill stores the secrets.
func (h *Home) fill(context.Context) error {
	stage := h.deployed.stage()
	canary := access.Full("canary", canaryToken, access.Default, access.Default)
	for kind, document := range map[string]any{
		"clients": secrets.Clients{Tokens: []string{ClientToken}, Records: append(Others.Records(), canary)},
		"fly":     secrets.Fly{Token: MachinesToken}, "canary": secrets.Canary{Token: canaryToken},
		"outputs": secrets.Outputs{
			Endpoint: h.S3, Region: s3.Region, AccessKeyID: h.Owner.ID, SecretAccessKey: h.Owner.Secret,
			WorkerAccessKeyID: "worker-key", WorkerSecretAccessKey: "worker-secret",
		},
	} {
		text, err := json.Marshal(document)
		if err != nil {
			return fmt.Errorf("cannot encode a secret: %w", err)
		}
		h.services.secrets[secrets.Name(stage, kind)] = string(text)
	}
	for name, value := range clients.Secrets() {
		h.services.secrets[secrets.Name(stage, secrets.Jobs+access.Default+"/"+name)] = value
	}
	return nil
}

// Buckets returns the names of the two buckets.
func (h *Home) Buckets() (uploads, accepted string) {
	return h.deployed.variable("SORTIE_UPLOADS_BUCKET"), h.deployed.variable("SORTIE_ACCEPTED_BUCKET")
}

// IAM returns the roles with their refused and used calls.
func (h *Home) IAM() *awsfake.IAM { return h.iam }

func (h *Home) fail(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.broken = append(h.broken, fmt.Errorf(format, args...))
}

// Stop ends everything that Start started. It returns the failures of the home itself.
func (h *Home) Stop(ctx context.Context) error {
	h.stop()
	var failed []error
	if h.around != nil {
		failed = append(failed, h.around.Stop(ctx))
	}
	if h.lambda != nil {
		h.lambda.close()
	}
	h.loops.Wait()
	for _, server := range []*httptest.Server{h.api, h.runtime, h.cloud} {
		if server != nil {
			server.CloseClientConnections()
			server.Close()
		}
	}
	if h.bucket != nil {
		failed = append(failed, h.bucket.Stop(ctx))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return errors.Join(append(failed, h.broken...)...)
}

var _ http.Handler = gateway{}
