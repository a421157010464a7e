//go:build localstack

package acceptance

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"log/slog"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/suite/scripts"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sortie-dev/sortie/local/proof/engines/servers"
	"github.com/sortie-dev/sortie/local/proof/engines/tinymodel"
	"github.com/sortie-dev/sortie/local/proof/localstack/deployment"
	"github.com/sortie-dev/sortie/local/proof/localstack/fixtures"
	"github.com/sortie-dev/sortie/local/proof/localstack/server"
	"github.com/sortie-dev/sortie/local/proof/port/awstest"
	"github.com/sortie-dev/sortie/local/proof/stacktest"
	"github.com/sortie-dev/sortie/local/proof/suite"
	"github.com/sortie-dev/sortie/local/proof/suite/clients"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor"
)

// atOnce is the number of parallel tests. They mostly wait, so it exceeds the number of CPUs.
const atOnce = "32"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err)
	}
	stacktest.Main(m, os.Args, os.Environ(), suite.ProgramsOf(os.Environ()))
}

// also are the tests of each sample of the suite: one for each service of AWS.
var also = []string{
	"export produces a file", "program that succeeds is a completed run", "schedule fires at its times", "webhook delivers signed events",
	"inference task streams its answer and continues behind an event", "hook before the run decides",
}

// TestDeployed checks that a deployment passes the suite, and replaces it by another release.
//
//nolint:paralleltest // one deployment, and one thing after the other
func TestDeployed(t *testing.T) {
	w := newWorld(t)
	t.Run("the suite", func(t *testing.T) { suite.Run(t, w.target) })
	t.Run("no log has the secrets of jobs", w.hidesSecrets)
	t.Run("another release is deployed during runs", w.redeploys)
	t.Run("the stage is drained, restored and emptied", w.operates)
}

// TestFaults kills and breaks functions of a deployment.
//
//nolint:paralleltest // likewise
func TestFaults(t *testing.T) {
	w := newWorld(t)
	t.Run("processes of functions are killed", w.kills)
	t.Run("a function is broken", w.breaks)
}

// world is the deployment with its fixtures.
type world struct {
	target suite.Target
	aws    aws.Config
	// stage is the name of the deployment; program is "localstack".
	stage, program string
	server         server.Server
}

func newWorld(t *testing.T) *world {
	t.Helper()
	var missing []string
	need := func(name string) string {
		value := os.Getenv(name)
		if value == "" {
			missing = append(missing, name)
		}
		return value
	}
	cfg := awstest.LocalStack(t)
	machines, source, token := need("SORTIE_MACHINES_ADDR"), need("SORTIE_SOURCE_ADDR"), need("SORTIE_MACHINES_TOKEN")
	w := &world{
		aws: cfg, stage: need("SORTIE_STAGE"), program: need("SORTIE_LOCALSTACK_PROGRAM"),
		server: server.Server{Dir: need("SORTIE_LOCALSTACK_DIR"), Clock: clock.System{}},
		target: suite.Target{
			Name: "the stack in LocalStack", URL: need("SORTIE_URL"), Token: need("SORTIE_TOKEN"), Others: deployment.Others,
			Machines: outside.Machines{URL: "http://" + machines, Token: token, App: fixtures.App},
			Buckets: outside.Buckets{
				Endpoint: *cfg.BaseEndpoint, Region: cfg.Region, KeyID: "test", Secret: "test",
				Uploads: need("SORTIE_UPLOADS_BUCKET"), Accepted: need("SORTIE_ACCEPTED_BUCKET"),
			},
			Gateway: []string{"X-Amzn-Requestid", "X-Amzn-Trace-Id", "X-Amz-Apigw-Id", "X-Localstack", "Server"},
			Lacks: map[suite.Capability]string{
				suite.ShortWindows:  "wake-ups of a deployment on AWS may be 90 s late, so shorter windows are refused",
				suite.OwnNotFound:   "API Gateway answers itself if there is no route",
				suite.NoticeLeaving: "a function and its seat are held until the end of a stream, as on AWS",
				suite.OwnEncoding:   "LocalStack decompresses a body with Content-Encoding and fails if it is not compressed",
			},
		},
	}
	if len(missing) > 0 {
		t.Fatalf("%v are not set: \"make test-localstack\" sets them", missing)
	}
	var err error
	if w.target.Every, err = strconv.Atoi(cmp.Or(os.Getenv("SORTIE_SUITE_EVERY"), "1")); err != nil {
		t.Fatal(err)
	}
	w.target.Also = also
	if w.target.MaxMachines, err = strconv.Atoi(Settings()["SORTIE_MAX_MACHINES"]); err != nil {
		t.Fatal(err)
	}
	if w.target.Certificate, err = outside.Certificate(w.server.Trusted()); err != nil {
		t.Fatal(err)
	}
	w.target.LlamaServer = llamaServer(t, *w.target.Certificate)
	w.begin(t, fixtures.Config{Machines: machines, Source: source, Token: token})
	return w
}

// llamaServer starts a llama-server behind a proxy with the certificate, because a deployment
// requires TLS. It returns the address of the proxy.
func llamaServer(t *testing.T, certificate tls.Certificate) string {
	t.Helper()
	installed, err := servers.Install(t.Context(), platform.EngineLlamaCpp, os.Environ(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	// Its model is slow enough for a cancel during an answer.
	server, err := installed.Start(t.Context(), servers.Options{Folder: t.TempDir(), Shape: tinymodel.Slow})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewUnstartedServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(address) }})
	proxy.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	proxy.StartTLS()
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// hidesSecrets searches the functions' log for secrets.
func (w *world) hidesSecrets(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(w.server.Dir, "functions.log"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("LocalStack runs in a container: run it in Python, with LOCALSTACK=python")
	}
	if err != nil || !bytes.Contains(text, []byte("job.completed")) {
		t.Fatalf("got %d bytes, %v, want the log of the functions", len(text), err)
	}
	for secret, value := range clients.Secrets() {
		if bytes.Contains(text, []byte(value)) {
			t.Errorf("got the value of %s in the log of the functions", secret)
		}
	}
}

// begin starts the fixtures and the sweep.
func (w *world) begin(t *testing.T, around fixtures.Config) {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The server removes this folder, even after a killed test.
	dir := filepath.Join(w.server.Dir, "machines")
	plays := filepath.Join(dir, "plays")
	if err := os.MkdirAll(plays, 0o700); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(w.server.Dir, "machines.log"))
	if err != nil {
		t.Fatal(err)
	}
	w.target.Scripts = scripts.In(plays)
	around.Dir, around.Clock, around.Log = filepath.Join(dir, "records"), clock.System{}, slog.New(slog.NewTextHandler(log, nil))
	around.Worker, around.Supervisor = w.target.Scripts.Image(executable), []string{executable, supervisor.Command}
	around.Images = suite.Images(executable)
	around.Wrap = true
	running, err := fixtures.Start(t.Context(), around)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var sweeps sync.WaitGroup
	sweeps.Go(func() { w.sweep(ctx) })
	t.Cleanup(func() {
		stop()
		sweeps.Wait()
		if err := running.Stop(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
		_ = log.Close()
	})
}

// sweepPause is the interval of sweeps. The deployment's own schedule has a minute.
const sweepPause = 2 * time.Second

// sweep invokes the sweep repeatedly, like its schedule. Errors are in the function's log.
func (w *world) sweep(ctx context.Context) {
	for ctx.Err() == nil {
		event := json.RawMessage(`{"source": "aws.events", "detail-type": "Scheduled Event", "detail": {}}`)
		_ = awstest.Ask(ctx, w.aws, "POST /2015-03-31/functions/"+w.function("sweep")+"/invocations", event, nil)
		fired, stop := clock.System{}.NewTimer(sweepPause)
		select {
		case <-ctx.Done():
			stop()
		case <-fired:
		}
	}
}

// function returns the deployed name of a function.
func (w *world) function(name string) string { return "sortie-" + w.stage + "-" + name }
