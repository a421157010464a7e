//go:build localstack

package cost_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/suite/scripts"

	"github.com/sortie-dev/sortie/local/proof/cost"
	"github.com/sortie-dev/sortie/local/proof/stacktest"
	"github.com/sortie-dev/sortie/local/proof/suite"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func TestMain(m *testing.M) {
	stacktest.Main(m, os.Args, os.Environ(), suite.ProgramsOf(os.Environ()))
}

// TestDeploymentCost measures the rows in sequence on a deployment without other clients. It
// prints the tables and checks the goals.
func TestDeploymentCost(t *testing.T) {
	t.Parallel()
	d := deployed(t)
	idle := d.idle() // first: what ended runs leave is due for some hours
	d.count(d.warm)  // the first call of each function fetches secrets and keys
	measured := cost.Measured{On: time.Now().UTC().Format(time.DateOnly), With: "LocalStack 4.14.0 and DynamoDB Local"}
	measured.Rows = append(
		measured.Rows,
		d.mean(cost.RowPlain, d.plain), d.row(cost.RowLost, d.lost), d.row(cost.RowLimit, d.limit),
		d.row(cost.RowCancelled, d.cancelled), d.row(cost.RowRetried, d.retried()),
		d.heartbeats(), idle,
	)
	measured.Pages = d.pages()
	t.Log("\n" + measured.Report())
	for _, row := range measured.Rows {
		t.Logf("%s entered %v", row.Name, row.States)
	}
	for _, goal := range measured.Goals() {
		if !goal.Met() {
			t.Errorf("%s: got %v, want at most %v", goal.Claim, goal.Is, goal.AtMost)
		}
	}
	if *rewrite {
		if err := measured.Write(stored); err != nil {
			t.Fatal(err)
		}
		refresh(t, measured)
	}
}

// begin submits an export whose worker runs the script. Without a script it runs the export
// worker.
func (d *deployment) begin(name, words string, policy *contract.Policy) (task string) {
	d.Helper()
	if words != "" {
		d.stage.Set(d.T, name, words)
	}
	return d.client.Export("mods", contract.ExportRequest{PI: samples.SampleRoot, BatchID: &name, Policy: policy})
}

// ended waits for the end without calling the API, because polls by the client are not part of
// the row.
func (d *deployment) ended(task, state string) {
	d.Helper()
	d.awaitExecutions()
	status := outside.Get[contract.Status](d.client, "/status/"+task)
	d.Logf("%s %s", task, status.State)
	if status.State != state {
		d.Fatalf("%s: got %+v", task, status)
	}
}

func (d *deployment) warm() {
	for n := range 2 {
		task := d.begin(fmt.Sprint("warm-", n), "", nil)
		d.ended(task, "Completed")
		d.client.Call(http.MethodGet, "/download/"+task, "")
	}
}

// plain is an export with one status request and one download.
func (d *deployment) plain() {
	task := d.begin("plain", "", nil)
	d.ended(task, "Completed")
	if answer := d.client.Call(http.MethodGet, "/download/"+task, ""); answer.Status != http.StatusOK {
		d.Fatalf("download: got %d", answer.Status)
	}
}

// lost is like plain, but the first worker exits without a report and a sweep finds it.
func (d *deployment) lost() {
	mark := filepath.Join(d.TempDir(), "mark")
	d.ended(d.begin("lost", "once:"+mark+" exit:3 success", nil), "Completed")
}

// limit is a run whose only attempt reaches its time limit.
func (d *deployment) limit() {
	policy := &contract.Policy{TimeLimitSeconds: new(5), CancelGraceSeconds: new(1), Retry: &contract.RetryPolicy{MaxAttempts: new(1)}}
	d.ended(d.begin("limit", "wait:"+scripts.Pipe(d.T), policy), "Failed")
}

// cancelled is a run that a client cancels and whose worker stops on request.
func (d *deployment) cancelled() {
	policy := &contract.Policy{CancelGraceSeconds: new(1)}
	task := d.begin("cancelled", "wait:"+scripts.Pipe(d.T), policy)
	d.client.Running(task)
	if answer := d.client.Call(http.MethodPost, "/v1/tasks/"+task+"/cancel", "{}"); answer.Status/100 != 2 {
		d.Fatalf("cancel: got %d %s", answer.Status, answer.Body)
	}
	d.ended(task, "Cancelled")
}

// retried submits a run that fails. The returned function retries it and checks its success.
func (d *deployment) retried() func() {
	mark := filepath.Join(d.TempDir(), "mark")
	task := d.begin("retried", "once:"+mark+" exit:3 success", &contract.Policy{Retry: &contract.RetryPolicy{MaxAttempts: new(1)}})
	d.ended(task, "Failed")
	return func() {
		answer := d.client.Call(http.MethodPost, "/v1/tasks/"+task+"/retry", "{}")
		if answer.Status/100 != 2 {
			d.Fatalf("retry: got %d %s", answer.Status, answer.Body)
		}
		d.ended(outside.Decode[contract.RetryAccepted](d.T, answer.Body).TaskID, "Completed")
	}
}

// heartbeatsMeasured is the number of measured heartbeats. beatsOfAnHour is the number in an
// hour at one heartbeat per 30 s.
const heartbeatsMeasured, beatsOfAnHour = 20, 120

// heartbeats measures heartbeats in the name of a waiting worker.
func (d *deployment) heartbeats() cost.Row {
	file, hold := filepath.Join(d.TempDir(), "envelope"), scripts.Pipe(d.T)
	task := d.begin("beats", "envelope:"+file+" wait:"+hold+" success", nil)
	d.client.Running(task)
	text, err := os.ReadFile(file)
	for ; os.IsNotExist(err); text, err = os.ReadFile(file) {
		d.pause(50 * time.Millisecond) // the machine counts as running before its program starts
	}
	if err != nil {
		d.Fatal(err)
	}
	envelope := outside.Decode[contract.TaskEnvelope](d.T, text)
	say := func(what string, body any) {
		answer := d.client.Call(http.MethodPost, "/v1/tasks/"+task+"/"+what, string(outside.Encode(d.T, body)), "Authorization", "Bearer "+envelope.TaskToken)
		if answer.Status != http.StatusOK {
			d.Fatalf("%s: got %d %s", what, answer.Status, answer.Body)
		}
	}
	say("started", contract.TaskStarted{Attempt: 1, WorkerID: "measured"})
	used, _ := d.during(func() {
		for n := range heartbeatsMeasured {
			say("heartbeat", contract.TaskHeartbeat{Attempt: 1, WorkerID: "measured", ProgressPct: &n})
		}
	})
	say("completed", contract.TaskCompleted{Attempt: 1, WorkerID: "measured", Outcome: contract.OutcomeSucceeded})
	scripts.Release(d.T, hold)
	d.ended(task, "Completed")
	return cost.Row{Name: cost.RowHeartbeats, Usage: used.Times(float64(beatsOfAnHour) / heartbeatsMeasured)}
}

// The scheduled calls of a function in a month, one each minute. Five minutes are measured:
// after that time a process reads secrets and other expired data again.
const sweepsMeasured, sweepsOfAMonth = 5, 30 * 24 * 60

// canaryPause is the pause after which the next sweep also sends a canary: more than half of
// the interval of a minute.
const canaryPause = 32 * time.Second

// cleanups are the calls before the measured ones, which clean up after the runs. Work that the
// first call leaves is due again after less than cleanupPause.
const (
	cleanups     = 3
	cleanupPause = 12 * time.Second
)

// signaturesOfAMonth are the KMS calls in a month without runs: the token of canaries each
// hour, and the public key for about as many new processes.
const signaturesOfAMonth = 2 * 30 * 24

// scheduled are the functions that a rule calls each minute.
var scheduled = []string{"sweep", "relay"}

// endWalk ends the relay's walk over all streams, which it repeats in the first hour of a
// deployment.
func (d *deployment) endWalk() {
	d.Helper()
	access := d.aws.Copy()
	if endpoint := d.variables["AWS_ENDPOINT_URL_DYNAMODB"]; endpoint != "" {
		access.BaseEndpoint = &endpoint
	}
	store, err := dynamo.Open(access, dynamo.Config{Table: d.variables["SORTIE_TABLE"], Clock: clock.System{}})
	if err != nil {
		d.Fatal(err)
	}
	feed, err := dynamo.NewFeed(store, dynamo.FeedConfig{Retention: time.Hour})
	if err != nil {
		d.Fatal(err)
	}
	if _, err := feed.Append(d.Context(), "walk/streams", port.Batch{State: []byte(`{"since":"2026-01-01T00:00:00Z","done":true}`)}); err != nil {
		d.Fatal(err)
	}
}

// idle measures the stack without runs.
func (d *deployment) idle() cost.Row {
	rules := 0
	for _, rule := range d.template.Of("Events::Rule") {
		if rule.Text("ScheduleExpression") == "rate(1 minute)" {
			rules++
		}
	}
	if rules != len(scheduled) {
		d.Fatalf("the template has %d schedules, want those of %v", rules, scheduled)
	}
	d.endWalk()
	for range cleanups {
		for _, function := range scheduled {
			d.schedule(function)
		}
		d.pause(cleanupPause)
	}
	d.settle()
	for _, function := range scheduled {
		d.lead(function, d.server) // a new process, which has read nothing yet
	}
	before := d.since()
	d.proxy.Take()
	for range sweepsMeasured {
		d.pause(canaryPause)
		for _, function := range scheduled {
			d.schedule(function)
		}
	}
	d.settle()
	// Nothing else is running, so count every call of every function.
	counted, own := d.proxy.Take()
	used, metrics := cost.Usage{}, 0.0
	for function, each := range counted {
		d.Logf("of %s: %v", function, each)
		used = used.Plus(each)
	}
	for function := range d.memory {
		calls := d.invocations(before, function)
		if function == "probe" || slices.Contains(fronts, function) {
			calls[cost.APIRequests] = calls[cost.LambdaRequests]
		}
		calls[cost.LambdaGBs] -= own[function].Seconds() * d.memory[function]
		used = used.Plus(calls)
		metrics += d.metrics(before, function)
	}
	for _, function := range scheduled {
		if calls := len(d.logged(before, function)); calls < sweepsMeasured { // changes of the table also call the relay
			d.Fatalf("got %d calls of %s, want %d or more", calls, function, sweepsMeasured)
		}
	}
	delete(used, cost.Signatures)
	return cost.Row{Name: cost.RowIdle, Usage: used.Times(float64(sweepsOfAMonth) / sweepsMeasured).Plus(d.standing()).
		Plus(cost.Usage{cost.MetricMonths: metrics, cost.Signatures: signaturesOfAMonth})}
}

// standing returns the usage of resources that are billed by the month.
func (d *deployment) standing() cost.Usage {
	used := cost.Usage{
		cost.KeyMonths: float64(len(d.template.Of("KMS::Key"))), cost.SecretMonths: float64(len(d.template.Of("SecretsManager::Secret"))),
	}
	for _, alarm := range d.template.Of("CloudWatch::Alarm") {
		used[cost.AlarmMonths] += max(1, float64(strings.Count(alarm.Text("Metrics"), `"MetricStat"`)))
	}
	return used.Plus(cost.Polls())
}
