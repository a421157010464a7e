package roles_test

import (
	"errors"
	"flag"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/suite/scripts"

	"github.com/sortie-dev/sortie/local/proof/acceptance"
	"github.com/sortie-dev/sortie/local/proof/localstack/fixtures"
	"github.com/sortie-dev/sortie/local/proof/roles"
	"github.com/sortie-dev/sortie/local/proof/stacktest"
	"github.com/sortie-dev/sortie/local/proof/suite"
	"github.com/sortie-dev/sortie/local/proof/suite/clients"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/local/twin/s3"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// every selects a sample of the suite in "make test". The whole suite runs in "make nightly".
var every = flag.Int("every", 10, "run every n-th test of the suite, and those that are needed to use each permission")

func TestMain(m *testing.M) {
	stacktest.AtOnce(32)
	environ := os.Environ()
	stacktest.Main(m, os.Args, environ, suite.ProgramsOf(environ))
}

// start starts a home and returns it as a target of the suite.
func start(t *testing.T) (*roles.Home, suite.Target) {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	plays := filepath.Join(dir, "plays")
	if err := os.Mkdir(plays, 0o700); err != nil {
		t.Fatal(err)
	}
	scripts, trusted := scripts.In(plays), filepath.Join(dir, "trusted.pem")
	certificate, err := outside.Certificate(trusted)
	if err != nil {
		t.Fatal(err)
	}
	log := &stacktest.Log{}
	home, err := roles.Start(t.Context(), roles.Config{
		Dir: dir, Settings: acceptance.Settings(), Trusted: trusted, Log: log,
		Fixtures: fixtures.Config{
			Worker: scripts.Image(executable), Supervisor: []string{executable, supervisor.Command}, Images: suite.Images(executable),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := home.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the log:\n%s", log)
		}
		if err := log.Secrets(slices.Collect(maps.Values(clients.Secrets()))...); err != nil {
			t.Error(err)
		}
	})
	uploads, accepted := home.Buckets()
	most, err := strconv.Atoi(acceptance.Settings()["SORTIE_MAX_MACHINES"])
	if err != nil {
		t.Fatal(err)
	}
	return home, suite.Target{
		Name: "the deployed functions on fakes of AWS", URL: home.URL, Token: roles.ClientToken, Others: roles.Others,
		Machines:   outside.Machines{URL: home.Machines, Token: roles.MachinesToken, App: fixtures.App},
		Buckets:    outside.Buckets{Endpoint: home.S3, Region: s3.Region, KeyID: home.Owner.ID, Secret: home.Owner.Secret, Uploads: uploads, Accepted: accepted},
		HoldSweeps: home.HoldSweeps, Scripts: scripts, MaxMachines: most, Certificate: certificate, Lacks: lacks(t), Every: *every, Also: also,
	}
}

// lacks returns the capabilities that a home does not have. Some are missing in every
// deployment, others because a program is not installed.
func lacks(t *testing.T) map[suite.Capability]string {
	t.Helper()
	lacks := map[suite.Capability]string{
		suite.OwnNotFound:   "API Gateway answers itself if there is no route",
		suite.NoticeLeaving: "a function and its seat are held until the end of a stream, as on AWS",
		suite.ShortWindows:  "wake-ups may be 90 s late, so shorter windows are refused",
		suite.Faults:        "what machines do concerns no role, and takes long",
	}
	suite.LookForBash(t, os.Getenv("CI") != "", lacks)
	return lacks
}

// TestRolesSuffice runs the use cases with the deployed functions. Every call is permitted by
// its function's role, and each permission is used or has a reason.
func TestRolesSuffice(t *testing.T) { //nolint:tparallel // one use case after the other
	t.Parallel()
	var home *roles.Home
	t.Cleanup(func() { // when the home has stopped: its log is above
		if home != nil {
			checkRoles(t, home.IAM())
		}
	})
	var target suite.Target
	home, target = start(t)
	t.Run("the suite", func(t *testing.T) { suite.Run(t, target) })                                                //nolint:paralleltest // one after the other
	t.Run("a WebSocket gets events until its client sends data", func(t *testing.T) { connects(t, home, target) }) //nolint:paralleltest // one after the other
	t.Run("a ticket is for no other stream", func(t *testing.T) { isRefused(t, target) })                          //nolint:paralleltest // one after the other
	t.Run("metrics are read behind many runs", func(t *testing.T) {                                                //nolint:paralleltest // one after the other
		client := &outside.Client{T: t, URL: target.URL, Token: target.Token}
		if answer := client.Call(http.MethodGet, "/metrics", ""); answer.Status != http.StatusOK {
			t.Errorf("got %d %s, want 200", answer.Status, answer.Body)
		}
	})
	t.Run("the canary exports", func(t *testing.T) { //nolint:paralleltest // one after the other
		if err := home.Check(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// connects opens one connection that gets the events of a run, and one that disconnects.
func connects(t *testing.T, home *roles.Home, target suite.Target) {
	t.Helper()
	ctx, client := t.Context(), &outside.Client{T: t, URL: target.URL, Token: target.Token}
	answer := client.Call(http.MethodPost, "/v1/events/tickets", "{}")
	ticket := outside.Decode[contract.Ticket](t, answer.Body).Ticket
	if err := errors.Join(home.Connect(ctx, "stays", ticket), home.ConnectWithToken(ctx, "leaves"), home.Leave(ctx, "leaves")); err != nil {
		t.Fatal(err)
	}
	client.End(client.Export("mods", contract.ExportRequest{PI: samples.SampleRoot}))
	for messages := 0; messages == 0; messages, _ = home.Got("stays") {
		if err := clock.Sleep(ctx, clock.System{}, 50*time.Millisecond); err != nil {
			t.Fatalf("got no message: %v", err)
		}
	}
	if err := home.Say(ctx, "stays"); err != nil {
		t.Fatal(err)
	}
	if _, open := home.Got("stays"); open {
		t.Error("got an open connection after its client has sent data, want it closed")
	}
}

// isRefused opens the stream of a task with a ticket for another one.
func isRefused(t *testing.T, target suite.Target) {
	t.Helper()
	client := &outside.Client{T: t, URL: target.URL, Token: target.Token}
	ticket := outside.Decode[contract.Ticket](t, client.Call(http.MethodPost, "/v1/events/tickets", "{}").Body).Ticket
	answer := client.Call(http.MethodGet, "/v1/tasks/none/stream?ticket="+url.QueryEscape(ticket), "", "Authorization", "")
	if answer.Status != http.StatusForbidden && answer.Status != http.StatusNotFound && answer.Status != http.StatusUnauthorized {
		t.Errorf("got %d %s, want a refusal", answer.Status, answer.Body)
	}
}
