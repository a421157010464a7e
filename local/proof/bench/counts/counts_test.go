package counts_test

import (
	"flag"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

var rewrite = flag.Bool("rewrite", false, "write the generated parts of the documents")

// The names of the homes.
const (
	onSQLiteName   = "SQLite"
	onDynamoDBName = "DynamoDB"
)

// counts are the counts of one run, or of several.
type counts map[count]float64

// kind is a kind of run.
type kind struct {
	name string
	// prepare stores the prerequisites of such runs.
	prepare func(w *world)
	// start starts the nth run and returns its task.
	start func(w *world, n int) (task string)
}

func kinds() []kind {
	started := func(w *world, path, body string) string {
		var accepted struct {
			TaskID string `json:"taskId"`
			Export string `json:"task_id"`
		}
		w.call(http.MethodPost, path, "", body, &accepted)
		return accepted.TaskID + accepted.Export
	}
	const program = `"image": "registry.example/report:1", "command": ["report", "--all"]`
	return []kind{
		{"export", func(*world) {}, func(w *world, _ int) string {
			return started(w, "/export/mods", `{"pi": "01K9XVBAQZF9EHDRXGBEADTZYY"}`)
		}},
		{"program", func(*world) {}, func(w *world, _ int) string { return started(w, "/v1/runs", "{"+program+"}") }},
		{"job with constraints", func(w *world) {
			w.call(http.MethodPut, "/v1/jobs/report", "", `{`+program+`, "constraints": {"maxConcurrentRuns": 1, "requirePreviousSuccess": true}}`, nil)
		}, func(w *world, _ int) string { return started(w, "/v1/jobs/report/runs", "{}") }},
		{"inference task", func(w *world) {
			place := platform.EnginePlace{Kind: platform.EngineMock, Model: "mock", Slots: 1, Replicas: make([]platform.EngineReplica, 1)}.WithIDs()
			w.ok(w.home.store().SavePool(w.Context(), platform.Pool{Tenant: tenant, ID: "pool0", Limit: 1, QueueLimit: 10, Engine: &place}))
		}, func(w *world, _ int) string {
			return started(w, "/v1/tasks", `{"model_ref": "mock", "workload": "completion", "prompt": "tell a story", "max_tokens": 20}`)
		}},
	}
}

// The first runs of a world create tables, streams and caches for the measured ones.
const (
	firstRuns = 3
	manyRuns  = 20
)

// measure returns the counts of one run of a kind.
func measure(t *testing.T, open func(*world) home, k kind) (each counts) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, open)
		k.prepare(w)
		one := func(n int) {
			task := k.start(w, n)
			if r := w.finish(task); r.State != run.Completed {
				t.Fatalf("%s: got %s %+v, want Completed", k.name, r.State, r.Fault)
			}
			w.call(http.MethodGet, "/status/"+task, "", "", nil)
			synctest.Wait()
			w.home.relay()
		}
		for n := range firstRuns {
			one(n)
		}
		defer debug.SetGCPercent(debug.SetGCPercent(-1)) // because a collection empties pools
		var from, to runtime.MemStats
		before := w.read()
		runtime.GC()
		runtime.ReadMemStats(&from)
		for n := range manyRuns {
			one(firstRuns + n)
		}
		runtime.ReadMemStats(&to)
		each = w.read()
		for c := range each {
			each[c] = (each[c] - before[c]) / manyRuns
		}
		if raced { // the detector allocates too
			return
		}
		each[objectsAllocated] = float64(to.Mallocs-from.Mallocs) / manyRuns
		each[bytesAllocated] = float64(to.TotalAlloc-from.TotalAlloc) / manyRuns
	})
	return each
}

// TestWhatARunCosts counts the cost of one run of each kind in both homes, and compares the
// counts with the README's tables. "make generate" writes the tables.
func TestWhatARunCosts(t *testing.T) { //nolint:paralleltest // it counts what the process allocates
	var made []func(former string) string
	for _, h := range []struct {
		name string
		open func(*world) home
	}{{onSQLiteName, openSQLite}, {onDynamoDBName, openDynamoDB}} {
		measured := map[string]counts{}
		for _, k := range kinds() {
			measured[k.name] = measure(t, h.open, k)
		}
		made = append(made, func(former string) string { return tableOf(h.name, kinds(), measured, former) })
	}
	err := refresh(func(former string) string {
		var all []string
		for _, table := range made {
			all = append(all, table(former))
		}
		return strings.Join(all, "\n")
	}, *rewrite)
	if err != nil {
		t.Error(err)
	}
}
