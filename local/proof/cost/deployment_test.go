//go:build localstack

package cost_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/suite/scripts"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sortie-dev/sortie/local/proof/cost"
	"github.com/sortie-dev/sortie/local/proof/localstack/fixtures"
	"github.com/sortie-dev/sortie/local/proof/port/awstest"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/sortie/template"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor"
)

// deployment is a deployment in LocalStack whose functions call AWS through the proxy.
type deployment struct {
	*testing.T
	client        *outside.Client
	stage         *scripts.Folder
	aws           aws.Config
	proxy         *cost.Proxy
	name, machine string
	// probes is the API's address for the sweep. Calls to it are marked as the sweep's.
	probes string
	// server is the URL of the proxy.
	server string
	// template is the deployed template. log is the log file of the functions.
	template template.Template
	log      string
	// variables are the original variables of a function that uses the table.
	variables map[string]string
	// memory is each function's memory in GB.
	memory map[string]float64
}

func deployed(t *testing.T) *deployment {
	t.Helper()
	var missing []string
	demand := func(name string) string {
		if os.Getenv(name) == "" {
			missing = append(missing, name)
		}
		return os.Getenv(name)
	}
	d := &deployment{
		T: t, aws: awstest.LocalStack(t), memory: map[string]float64{},
		client: &outside.Client{
			T: t, URL: demand("SORTIE_URL"), Token: demand("SORTIE_TOKEN"),
			Gateway: []string{"X-Amzn-Requestid", "X-Amzn-Trace-Id", "X-Amz-Apigw-Id", "X-Localstack", "Server"},
		},
		name: "sortie-" + demand("SORTIE_STAGE") + "-", machine: demand("SORTIE_STATE_MACHINE"),
		log: filepath.Join(demand("SORTIE_LOCALSTACK_DIR"), "functions.log"),
	}
	machines, source, token := demand("SORTIE_MACHINES_ADDR"), demand("SORTIE_SOURCE_ADDR"), demand("SORTIE_MACHINES_TOKEN")
	if len(missing) > 0 {
		t.Fatalf("%v are not set: \"make cost\" sets them", missing)
	}
	var err error
	file := filepath.Join(filepath.Dir(d.log), "deployment", "cdk.out", d.name[:len(d.name)-1]+".template.json")
	if d.template, err = template.Read(file); err != nil {
		t.Fatal(err)
	}
	d.serve(machines, source, token)
	if d.proxy, err = cost.NewProxy(*d.aws.BaseEndpoint, clock.System{}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(d.proxy)
	t.Cleanup(server.Close)
	d.server = server.URL
	d.probes = d.marked()
	d.pauseSchedules()
	for _, function := range d.functions() {
		d.lead(function, server.URL)
	}
	return d
}

// functions returns the names of the template's functions.
func (d *deployment) functions() []string {
	d.Helper()
	var names []string
	for _, function := range d.template.Of("Lambda::Function") {
		name, own := strings.CutPrefix(function.Text("FunctionName"), d.name)
		if !own {
			d.Fatalf("%s: got function %q, want a name that starts with %s", function.ID, name, d.name)
		}
		names = append(names, name)
	}
	return names
}

// serve runs the machines and the collection.
func (d *deployment) serve(machines, source, token string) {
	d.Helper()
	executable, err := os.Executable()
	if err != nil {
		d.Fatal(err)
	}
	plays := d.TempDir()
	d.stage = scripts.In(plays)
	around, err := fixtures.Start(d.Context(), fixtures.Config{
		Machines: machines, Source: source, Token: token, Dir: d.TempDir(), Clock: clock.System{},
		Log:    slog.New(slog.DiscardHandler),
		Worker: d.stage.Image(executable), Supervisor: []string{executable, supervisor.Command},
	})
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() {
		if err := around.Stop(context.Background()); err != nil {
			d.Error(err)
		}
	})
}

func (d *deployment) ask(operation string, input, output any) {
	d.Helper()
	awstest.Prepare(d.T, d.aws, operation, input, output)
}

// lead makes a function call AWS through the proxy until the test ends.
func (d *deployment) lead(function, proxy string) {
	d.Helper()
	path := "/2015-03-31/functions/" + d.name + function + "/configuration"
	var is struct {
		MemorySize  float64
		Environment struct{ Variables map[string]string }
	}
	d.ask("GET "+path, struct{}{}, &is)
	d.memory[function] = is.MemorySize / 1024
	if function == "callback" {
		d.memory["probe"] = d.memory[function] // see logged
	}
	put := func(variables map[string]string) {
		input := map[string]any{"Environment": map[string]any{"Variables": variables}}
		if err := awstest.Ask(context.Background(), d.aws, "PUT "+path, input, nil); err != nil {
			d.Error(err)
		}
	}
	if d.variables == nil && is.Environment.Variables["SORTIE_TABLE"] != "" {
		d.variables = is.Environment.Variables
	}
	through := maps.Clone(is.Environment.Variables)
	through["COST_MEASUREMENT"] = strconv.FormatInt(clock.System{}.Now().UnixNano(), 10) // a changed variable starts a new process
	for _, calls := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB"} {
		through[calls] = proxy + "/" + function
	}
	if function == "sweep" {
		through["SORTIE_PUBLIC_URL"] = d.probes
	}
	if through["SORTIE_OUTPUTS_ENDPOINT"] != "" {
		through["SORTIE_OUTPUTS_ENDPOINT"] = proxy
	}
	put(through)
	d.Cleanup(func() { put(is.Environment.Variables) })
	for state := ""; state != "Successful"; {
		var now struct{ LastUpdateStatus string }
		d.ask("GET "+path, struct{}{}, &now)
		state = now.LastUpdateStatus
		d.pause(100 * time.Millisecond)
	}
}

// pauseSchedules disables the schedules until the test ends. The test calls their functions
// itself.
func (d *deployment) pauseSchedules() {
	d.Helper()
	var rules struct {
		Rules []struct{ Name, ScheduleExpression string }
	}
	d.ask("AWSEvents.ListRules", struct{}{}, &rules)
	for _, rule := range rules.Rules {
		if rule.ScheduleExpression == "" {
			continue
		}
		d.ask("AWSEvents.DisableRule", map[string]string{"Name": rule.Name}, nil)
		d.Cleanup(func() {
			if err := awstest.Ask(context.Background(), d.aws, "AWSEvents.EnableRule", map[string]string{"Name": rule.Name}, nil); err != nil {
				d.Error(err)
			}
		})
	}
}

func (d *deployment) pause(long time.Duration) {
	fired, stop := clock.System{}.NewTimer(long)
	defer stop()
	select {
	case <-fired:
	case <-d.Context().Done():
		d.Fatal("timed out")
	}
}

// schedule invokes a function like its schedule.
func (d *deployment) schedule(function string) {
	d.Helper()
	event := map[string]any{"source": "aws.events", "detail-type": "Scheduled Event", "detail": map[string]any{}}
	d.ask("POST /2015-03-31/functions/"+d.name+function+"/invocations", event, nil)
}

// moment is the start of a measurement: the time of the executions and the offset in the log.
type moment struct {
	at  time.Time
	log int64
}

func (d *deployment) since() moment {
	d.Helper()
	now := moment{at: clock.System{}.Now()}
	info, err := os.Stat(d.log)
	switch {
	case err == nil:
		now.log = info.Size()
	case !os.IsNotExist(err): // missing until the first call of a function
		d.Fatal(err)
	}
	return now
}

// row measures the usage of do.
func (d *deployment) row(name string, do func()) cost.Row {
	d.Helper()
	used, states := d.count(do)
	return cost.Row{Name: name, Usage: used, States: states}
}

// plainExports is the number of exports in the measured mean. An export that crosses a minute
// between two commits writes one more index entry.
const plainExports = 4

// mean is like row for the mean of several calls.
func (d *deployment) mean(name string, do func()) cost.Row {
	d.Helper()
	used, states := d.count(func() {
		for range plainExports {
			do()
		}
	})
	return cost.Row{Name: name, Usage: used.Times(1.0 / plainExports), States: states[:len(states)/plainExports]}
}

// count returns the usage during do, and the states that executions entered. A sweep's usage is
// not attributed, except for its writes.
func (d *deployment) count(do func()) (cost.Usage, []string) {
	d.Helper()
	d.awaitExecutions()
	return d.during(func() {
		do()
		d.awaitExecutions()
	})
}

// during is like count, but does not wait for executions.
func (d *deployment) during(do func()) (cost.Usage, []string) {
	d.Helper()
	d.settle()
	started := d.since()
	d.proxy.Take()
	do()
	d.settle()
	used := cost.Usage{}
	counted, own := d.proxy.Take()
	for function, each := range counted {
		switch function {
		case "sweep":
			each = cost.Usage{cost.WriteUnits: each[cost.WriteUnits]}
		case "relay":
			each[cost.EventUnits] = each[cost.WriteUnits]
			delete(each, cost.WriteUnits)
		}
		d.Logf("of %s: %v", function, each)
		used = used.Plus(each)
	}
	for function := range d.memory {
		if function == "sweep" || function == "probe" {
			continue
		}
		calls := d.invocations(started, function)
		calls[cost.LambdaGBs] -= own[function].Seconds() * d.memory[function] // the time of counting is not billed on AWS
		switch {
		case slices.Contains(fronts, function):
			calls[cost.APIRequests] = calls[cost.LambdaRequests]
		case function == "launch":
			calls[cost.LambdaGBs] += calls[cost.LambdaRequests] * cost.LaunchSeconds * d.memory[function]
		}
		used = used.Plus(calls)
	}
	if used[cost.LambdaRequests] == 0 {
		d.Fatalf("%s: no usage recorded", d.log)
	}
	states := d.entered(started)
	used[cost.Transitions] = float64(len(states))
	return used, states
}

// fronts are the functions behind the API.
var fronts = []string{"export", "callback", "status", "registry", "tasks"}

// settle waits until the counters no longer change. The stream's consumer is the last one.
func (d *deployment) settle() { d.pause(3 * time.Second) }

// execution is an element of ListExecutions.
type execution struct {
	ExecutionArn string      `json:"executionArn"`
	Status       string      `json:"status"`
	StartDate    json.Number `json:"startDate"`
}

func (d *deployment) executions() []execution {
	d.Helper()
	var page struct {
		Executions []execution `json:"executions"`
	}
	d.ask("AWSStepFunctions.ListExecutions", map[string]any{"stateMachineArn": d.machine, "maxResults": 1000}, &page)
	return page.Executions
}

// mostSweeps limits the sweeps of a wait: two minutes plus their duration.
const mostSweeps = 240

// awaitExecutions waits until no execution is running. Meanwhile it calls the sweep to find
// gone machines.
func (d *deployment) awaitExecutions() {
	d.Helper()
	for n := range mostSweeps {
		running := 0
		for _, e := range d.executions() {
			if e.Status == "RUNNING" {
				running++
			}
		}
		if running == 0 {
			return
		}
		if n > 0 {
			d.pause(500 * time.Millisecond)
		}
		d.schedule("sweep")
	}
	d.Fatalf("executions did not end: %+v", d.executions())
}

// entered returns the states that executions have entered since started. Each is a transition.
// So is each retry, but retries follow only failures.
func (d *deployment) entered(started moment) []string {
	d.Helper()
	var states []string
	for _, e := range d.executions() {
		at, err := e.StartDate.Float64()
		if err != nil || at < float64(started.at.UnixMilli())/1000 {
			continue
		}
		var history struct {
			Events []struct {
				Type    string `json:"type"`
				Entered struct {
					Name string `json:"name"`
				} `json:"stateEnteredEventDetails"`
			} `json:"events"`
		}
		d.ask("AWSStepFunctions.GetExecutionHistory", map[string]any{"executionArn": e.ExecutionArn, "maxResults": 1000}, &history)
		for _, event := range history.Events {
			if strings.HasSuffix(event.Type, "StateEntered") {
				states = append(states, event.Entered.Name)
			}
		}
	}
	return states
}
