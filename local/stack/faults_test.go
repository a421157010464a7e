package stack_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/collection"
	"github.com/sortie-dev/sortie/local/flymachines/faults"
	"github.com/sortie-dev/sortie/shared/contract"
)

// lie is one way in which the machines API lies about the machines of a run,
// and what the run has to show for it.
type lie struct {
	name  string
	rules []faults.Rule
	state string
	// attempt is the last one, code the fault that the run ended with.
	attempt int
	code    string
	// told are the events that carry a fault, in order; a regular expression.
	told string
	// most are the machines that were ever made for the run: at least one an
	// attempt, and at most so many.
	most int
}

// hasty are limits for machines that lie for seconds. A machine of this host
// starts well within them.
func hasty() map[string]string {
	return map[string]string{
		"SORTIE_START_TIMEOUT": "8s", "SORTIE_FURTHER_STARTS": "1", "SORTIE_MAX_ATTEMPTS": "2",
		"SORTIE_RETRY_DELAY": "1s", "SORTIE_RETRY_MAX_DELAY": "2s", "SORTIE_MAX_MACHINES": "0",
	}
}

// first is a rule's match for machines of first attempts.
func first() map[string]string { return map[string]string{"attempt": "1"} }

// lies leave enough time for a machine to start.
func lies() []lie {
	const badGateway = "start_refused:UNAVAILABLE"
	list := []lie{
		{"throttled", []faults.Rule{{Kind: faults.Throttle, Times: 3}}, "Completed", 1, "", "(start_refused:THROTTLED ?){3}", 1},
		{"no-room", []faults.Rule{{Kind: faults.Capacity}}, "Failed", 1, "CAPACITY", "start_refused:CAPACITY attempt_ended:CAPACITY failed:CAPACITY", 0},
		{"few-bad-gateways", []faults.Rule{{Kind: faults.BadGateway, Times: 3}}, "Completed", 1, "", "", 1},
		{"many-bad-gateways", []faults.Rule{{Kind: faults.BadGateway, Times: 5}}, "Completed", 1, "", badGateway, 1},
		{"bad-gateway-after", []faults.Rule{{Kind: faults.BadGatewayAfter, Times: 1}}, "Completed", 1, "", "", 1},
		{
			// The client repeats the request when the first machine is gone and its
			// name free again.
			"made-twice",
			[]faults.Rule{{Kind: faults.Slow, For: 3 * time.Second}, {Kind: faults.BadGatewayAfter, Times: 1}},
			"Completed", 1, "", "", 2,
		},
		{"lost-answer", []faults.Rule{{Kind: faults.LostAnswer, Times: 1}}, "Completed", 1, "", "", 1},
		{"slow", []faults.Rule{{Kind: faults.Slow, For: 2 * time.Second}}, "Completed", 1, "", "", 1},
		{"invisible", []faults.Rule{{Kind: faults.Invisible, For: 3 * time.Second}}, "Completed", 1, "", "", 1},
		{
			"lost-and-invisible",
			[]faults.Rule{{Kind: faults.LostAnswer, Times: 1}, {Kind: faults.Invisible, For: 3 * time.Second}},
			"Completed", 1, "", "(" + badGateway + " ?)*", 1,
		},
		{"stuck-destroying", []faults.Rule{{Kind: faults.StuckDestroying, For: 4 * time.Second}}, "Completed", 1, "", "", 1},
		{"oom", []faults.Rule{{Kind: faults.OOM, Metadata: first()}}, "Completed", 2, "", again("OUT_OF_MEMORY"), 2},
		{
			"always-oom",
			[]faults.Rule{{Kind: faults.OOM}},
			"Failed", 2, "OUT_OF_MEMORY",
			again("OUT_OF_MEMORY") + " attempt_ended:OUT_OF_MEMORY failed:OUT_OF_MEMORY", 2,
		},
		{"lost-exit", []faults.Rule{{Kind: faults.LostExit}}, "Completed", 1, "", "", 1},
		{"unreachable", []faults.Rule{{Kind: faults.Unreachable}}, "Completed", 1, "", "", 1},
	}
	for _, variant := range faults.Variants() {
		list = append(list, lie{
			"no-room-" + variant,
			[]faults.Rule{{Kind: faults.Capacity, Variant: variant, Times: 1}},
			"Completed", 1, "", "start_refused:CAPACITY", 1,
		})
	}
	return list
}

// again are the events of an attempt that is followed by another.
func again(code string) string { return "attempt_ended:" + code + " retry_scheduled:" + code }

// lateStarts take longer than a machine may take to start.
func lateStarts() []lie {
	return []lie{
		{"stuck-created", []faults.Rule{{Kind: faults.StuckCreated, Metadata: first()}}, "Completed", 2, "", again("START_TIMEOUT"), 2},
		{"stuck-starting", []faults.Rule{{Kind: faults.StuckStarting, Metadata: first()}}, "Completed", 2, "", again("START_TIMEOUT"), 2},
		{
			"never-starting",
			[]faults.Rule{{Kind: faults.StuckStarting}},
			"Failed", 2, "START_TIMEOUT",
			again("START_TIMEOUT") + " attempt_ended:START_TIMEOUT failed:START_TIMEOUT", 2,
		},
		{"too-slow", []faults.Rule{{Kind: faults.Slow, For: 10 * time.Second, Metadata: first()}}, "Completed", 2, "", again("START_TIMEOUT"), 2},
	}
}

func TestALyingMachinesAPI(t *testing.T) {
	t.Parallel()
	tellLies(t, "1m", lies())
}

func TestMachinesThatStartTooLate(t *testing.T) {
	t.Parallel()
	tellLies(t, "8s", lateStarts())
}

// tellLies has a stack export once for each lie, all at once.
func tellLies(t *testing.T, startTimeout string, lies []lie) {
	t.Helper()
	settings := hasty()
	settings["SORTIE_START_TIMEOUT"] = startTimeout
	g := start(t, served{Settings: settings})
	var plan faults.Plan
	for _, l := range lies {
		for _, rule := range l.rules {
			rule.Env = map[string]string{"BATCH_ID": l.name}
			plan.Rules = append(plan.Rules, rule)
		}
	}
	if err := g.stack.Machines().SetFaults(plan); err != nil {
		t.Fatal(err)
	}
	tasks, completed := map[string]string{}, 0
	for _, l := range lies {
		tasks[l.name] = g.postBatch(l.name)
		if l.state == "Completed" {
			completed++
		}
	}
	for _, l := range lies {
		g.shows(l, tasks[l.name])
	}
	g.nothingLeft(completed)
}

// shows follows a task to its end and holds it to what a lie makes of it.
func (g *target) shows(l lie, task string) {
	g.t.Helper()
	status := g.end(task)
	if status.State != l.state || status.Attempt != l.attempt || status.ErrorCode != l.code {
		g.t.Errorf("%s: it ended as %+v", l.name, status)
	}
	if told := g.faults(task); !regexp.MustCompile("^" + l.told + "$").MatchString(told) {
		g.t.Errorf("%s: its events tell %q, want %q", l.name, told, l.told)
	}
	if made := g.machinesOf(task); len(made) > l.most || len(made) < min(l.attempt, l.most) {
		g.t.Errorf("%s: its machines were %v, want %d", l.name, made, l.most)
	}
	g.served(status)
}

func TestALostExitIsALostWorker(t *testing.T) {
	t.Parallel()
	hold, mark := pipe(t), filepath.Join(t.TempDir(), "mark")
	g := start(t, served{Settings: hasty(), Play: "wait:" + hold + " once:" + mark + " exit:3 success"})
	if err := g.stack.Machines().SetFaults(faults.Plan{Rules: []faults.Rule{{Kind: faults.LostExit}}}); err != nil {
		t.Fatal(err)
	}
	task := g.post(`{}`)
	g.await(task, func(s contract.Status) bool { return s.State == "Running" })
	release(t, hold)
	if status := g.end(task); status.State != "Completed" || status.Attempt != 2 {
		t.Errorf("it ended as %+v", status)
	}
	if told := g.faults(task); told != "attempt_ended:WORKER_LOST retry_scheduled:WORKER_LOST" {
		t.Errorf("its events tell %q", told)
	}
	for _, e := range g.events(task) {
		if e.Exit != nil {
			t.Errorf("an exit that nobody was told: %+v", e)
		}
	}
	g.nothingLeft(0)
}

// TestManyRunsFitFlysBucket has more runs want a machine at once than Fly makes
// in many seconds, against all of its rate limits.
func TestManyRunsFitFlysBucket(t *testing.T) {
	t.Parallel()
	const runs = 20
	g := start(t, served{Play: "success", Settings: map[string]string{"SORTIE_RETRY_DELAY": "1s", "SORTIE_RETRY_MAX_DELAY": "4s"}})
	if err := g.stack.Machines().SetFaults(faults.Plan{RealLimits: true}); err != nil {
		t.Fatal(err)
	}
	tasks := make([]string, runs)
	var clients sync.WaitGroup
	for i := range tasks {
		clients.Go(func() { tasks[i] = g.post(`{}`) })
	}
	clients.Wait()
	throttled := 0
	for _, task := range tasks {
		if status := g.end(task); status.State != "Completed" || status.Attempt != 1 {
			t.Errorf("it ended as %+v", status)
		}
		told := g.faults(task)
		count := strings.Count(told, "start_refused:THROTTLED")
		throttled += count
		if len(strings.Fields(told)) != count {
			t.Errorf("its events tell %q", told)
		}
	}
	if throttled == 0 {
		t.Error("nothing was throttled")
	}
	t.Logf("%d runs were throttled %d times", runs, throttled)
	g.nothingLeft(0)
}

// TestAMixtureOfLies lets a seed decide what goes wrong, at every request.
func TestAMixtureOfLies(t *testing.T) {
	t.Parallel()
	everywhere := func(kind faults.Kind, rate float64) []faults.Rule {
		var rules []faults.Rule
		for _, action := range []string{faults.Create, faults.Get, faults.List, faults.Wait, faults.Stop, faults.Destroy} {
			rules = append(rules, faults.Rule{Kind: kind, Action: action, Rate: rate})
		}
		return rules
	}
	rules := []faults.Rule{
		{Kind: faults.Capacity, Rate: 0.1},
		{Kind: faults.Slow, Rate: 0.2, For: time.Second},
		{Kind: faults.Invisible, Rate: 0.2, For: 2 * time.Second},
		{Kind: faults.StuckCreated, Rate: 0.15, For: 2 * time.Second},
		{Kind: faults.StuckStarting, Rate: 0.1},
		{Kind: faults.StuckDestroying, Rate: 0.15, For: 2 * time.Second},
		{Kind: faults.OOM, Rate: 0.15},
		{Kind: faults.LostExit, Rate: 0.3},
		{Kind: faults.Unreachable, Rate: 0.1},
	}
	for _, kind := range []faults.Kind{faults.Throttle, faults.BadGateway, faults.BadGatewayAfter, faults.LostAnswer} {
		rules = append(rules, everywhere(kind, 0.1)...)
	}
	settings := hasty()
	maps.Copy(settings, map[string]string{"SORTIE_FURTHER_STARTS": "6", "SORTIE_MAX_ATTEMPTS": "6", "SORTIE_MAX_MACHINES": "4"})
	begin := func(seed uint64) (g *target, tasks []string) {
		g = start(t, served{Settings: settings})
		if err := g.stack.Machines().SetFaults(faults.Plan{Seed: seed, Rules: rules}); err != nil {
			t.Fatal(err)
		}
		for i := range 6 {
			tasks = append(tasks, g.postBatch(fmt.Sprint("batch-", i)))
		}
		return g, tasks
	}
	end := func(g *target, tasks []string) {
		for _, task := range tasks {
			status := g.end(task)
			t.Logf("%s in attempt %d: %s", status.State, status.Attempt, g.faults(task))
			if status.State != "Completed" {
				t.Errorf("it ended as %+v", status)
			}
			g.served(status)
		}
		g.nothingLeft(len(tasks))
	}
	one, ones := begin(1)
	two, twos := begin(2)
	end(one, ones)
	end(two, twos)
}

// postBatch accepts an export of the sample's root alone.
func (g *target) postBatch(batch string) string {
	g.t.Helper()
	body := fmt.Sprintf(`{"pi":%q,"batch_id":%q}`, collection.SampleRoot, batch)
	code, _, text := g.call(http.MethodPost, "/export/mods", body)
	if code != http.StatusAccepted {
		g.t.Fatalf("POST /export/mods: %d %s", code, text)
	}
	return decode[contract.ExportAccepted](g.t, text).TaskID
}

// faults are the events of a task that carry a fault, in order.
func (g *target) faults(task string) string {
	g.t.Helper()
	var told []string
	for _, e := range g.events(task) {
		if e.Fault != nil {
			told = append(told, strings.TrimPrefix(e.Type, "run.")+":"+e.Fault.Code)
		}
	}
	return strings.Join(told, " ")
}

// served holds what is served for a task to how it ended.
func (g *target) served(status contract.Status) {
	g.t.Helper()
	code, _, document := g.call(http.MethodGet, "/download/"+status.TaskID, "")
	switch {
	case status.State != "Completed":
		if code != http.StatusBadRequest {
			g.t.Errorf("GET /download of a failure: %d", code)
		}
	case code != http.StatusOK || records(g.t, document) != 1 || int64(len(document)) != *status.OutputFileSize:
		g.t.Errorf("GET /download: %d, %d bytes of %d", code, len(document), *status.OutputFileSize)
	}
}

// machinesOf names the machines that were ever made for a task.
func (g *target) machinesOf(task string) []string {
	return g.machines("metadata.run_id=" + task + "&include_deleted=true")
}

// machines asks the machines API for a list, as somebody who trusts nobody.
func (g *target) machines(query string) []string {
	g.t.Helper()
	text, err := os.ReadFile(filepath.Join(g.Data, "stack.json"))
	if err != nil {
		g.t.Fatal(err)
	}
	memory := decode[struct {
		Secrets map[string]string `json:"secrets"`
	}](g.t, text)
	request, err := http.NewRequestWithContext(g.t.Context(), http.MethodGet, g.Machines+"/v1/apps/arke-mods-export-worker/machines?"+query, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+memory.Secrets["machines-token"])
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		g.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var found []struct{ Name, State string }
	if err := json.NewDecoder(answer.Body).Decode(&found); err != nil {
		g.t.Fatalf("%s: %v", answer.Status, err)
	}
	names := make([]string, 0, len(found))
	for _, m := range found {
		names = append(names, m.Name+" "+m.State)
	}
	return names
}

// nothingLeft waits until no machine is live and the object store has this many
// objects: strays are destroyed, uploads cleared, failures leave nothing.
func (g *target) nothingLeft(objects int) {
	g.t.Helper()
	if err := g.stack.Machines().SetFaults(faults.Plan{}); err != nil {
		g.t.Fatal(err)
	}
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	var live, stored []string
	for range 1200 {
		var err error
		live = g.machines("")
		if stored, err = filepath.Glob(filepath.Join(g.Data, "s3", "blobs", "*", "*")); err != nil {
			g.t.Fatal(err)
		}
		if len(live) == 0 && len(stored) == objects {
			return
		}
		<-look.C
	}
	g.t.Errorf("machines are left: %v; the object store has %d objects for %d outputs", live, len(stored), objects)
}
