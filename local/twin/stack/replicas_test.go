package stack_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/await"
	"github.com/sortie-dev/sortie/local/proof/engines"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// wordEngine is the argument for the program of a replica: an inference server with the
// protocol of llama-server.
const wordEngine = "engine-server"

// engineServer serves at ENGINE_HOST and ENGINE_PORT until it is ended. The first word is a
// folder. While the server runs, it has a file there named after its replica, model and process
// id. If the second word is "fail", the server ends at once.
func engineServer(words []string, env map[string]string) int {
	if len(words) > 1 && words[1] == "fail" {
		return 3
	}
	at := filepath.Join(words[0], env["ENGINE_REPLICA"]+"."+env["ENGINE_MODEL"]+"."+strconv.Itoa(os.Getpid()))
	if err := os.WriteFile(at, nil, 0o600); err != nil {
		return 9
	}
	mock := mockengine.New(mockengine.Config{Clock: clock.System{}, Slots: 4, TokenEvery: 10 * time.Millisecond})
	server := &http.Server{Addr: net.JoinHostPort(env["ENGINE_HOST"], env["ENGINE_PORT"]), Handler: engines.Handler(platform.EngineLlamaCpp, mock), ReadHeaderTimeout: time.Second}
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintln(os.Stderr, err)
		return 4
	}
	return 0
}

// ownReplicas is a stack whose pool "own" runs its own replicas.
type ownReplicas struct {
	*target

	folder string
}

// job returns the document of the replicas' job.
func (f ownReplicas) job(more ...string) string {
	executable, err := os.Executable()
	if err != nil {
		f.T.Fatal(err)
	}
	words := append([]string{wordEngine, f.folder}, more...)
	return string(outside.Encode(f.T, map[string]any{
		"image": "exec:" + executable, "command": words,
		"policy": map[string]any{"cancelGraceSeconds": 2},
	}))
}

func (f ownReplicas) put(path, body string) {
	f.T.Helper()
	if answer := f.Call(http.MethodPut, path, body); answer.Status != http.StatusOK && answer.Status != http.StatusCreated {
		f.T.Fatalf("PUT %s: got %d %s, want 200 or 201", path, answer.Status, answer.Body)
	}
}

// keep creates or changes the pool with count replicas.
func (f ownReplicas) keep(job string, count int) {
	f.T.Helper()
	f.put("/v1/pools/own", fmt.Sprintf(`{"engine": {"kind": "llamacpp", "model": "one", "slots": 4, "machines": {"job": %q, "count": %d}}}`, job, count))
}

// newFleet creates the models and the job.
func newFleet(t *testing.T, g *target) ownReplicas {
	t.Helper()
	f := ownReplicas{g, t.TempDir()}
	for _, model := range []string{"one", "two"} {
		body := fmt.Sprintf(`{"id": %q, "engines": ["llamacpp"], "workloads": ["completion"], "engine_model": "model-%s"}`, model, model)
		if answer := f.Call(http.MethodPost, "/v1/catalog/models", body); answer.Status != http.StatusCreated {
			t.Fatalf("got %d %s, want 201", answer.Status, answer.Body)
		}
	}
	f.put("/v1/jobs/server", f.job())
	return f
}

func (f ownReplicas) health() contract.PoolHealth {
	f.T.Helper()
	return outside.Get[contract.PoolHealth](f.Client, "/v1/pools/own/health")
}

// until polls the health of the pool until is returns true.
func (f ownReplicas) until(what string, is func(contract.PoolHealth) bool) contract.PoolHealth {
	f.T.Helper()
	var h contract.PoolHealth
	await.Until(f.T, what, func() bool { h = f.health(); return is(h) })
	return h
}

// ready reports whether exactly n replicas serve and answer.
func ready(n int) func(contract.PoolHealth) bool {
	return func(h contract.PoolHealth) bool {
		return len(h.Replicas) == n && !slices.ContainsFunc(h.Replicas, func(r contract.ReplicaHealth) bool {
			return !r.Ready || r.Machine == nil || r.Machine.State != string(fleet.ReplicaServing)
		})
	}
}

// living returns the process ids of the running servers, by replica and model.
func (f ownReplicas) living() map[string][]int {
	f.T.Helper()
	files, err := os.ReadDir(f.folder)
	if err != nil {
		f.T.Fatal(err)
	}
	found := map[string][]int{}
	for _, file := range files {
		parts := strings.Split(file.Name(), ".")
		pid, err := strconv.Atoi(parts[2])
		if err != nil {
			f.T.Fatal(err)
		}
		if syscall.Kill(pid, 0) == nil {
			found[parts[0]+"."+parts[1]] = append(found[parts[0]+"."+parts[1]], pid)
		}
	}
	return found
}

// untilLiving waits until exactly one server runs for each of the names.
func (f ownReplicas) untilLiving(names ...string) {
	f.T.Helper()
	await.Until(f.T, fmt.Sprintf("server of each of %v", names), func() bool {
		found := f.living()
		right := len(found) == len(names)
		for _, name := range names {
			right = right && len(found[name]) == 1
		}
		return right
	})
}

// answered runs a task and returns its replica.
func (f ownReplicas) answered(model string) string {
	f.T.Helper()
	few := 3
	task := f.create(contract.TaskRequest{ModelRef: model, Prompt: "tell a story", MaxTokens: &few})
	if state := lastState(f.target, task); state != string(run.Completed) {
		f.T.Fatalf("got %s, want Completed", state)
	}
	return outside.Get[contract.Task](f.Client, "/v1/tasks/"+task).Inference.Replica
}

// remove deletes the pool.
func (f *ownReplicas) remove() {
	f.T.Helper()
	if answer := f.Call(http.MethodDelete, "/v1/pools/own", ""); answer.Status != http.StatusNoContent {
		f.T.Fatalf("got %d %s, want 204", answer.Status, answer.Body)
	}
}

// TestReplicasAreKept runs two servers, kills one, changes the count, reloads the model, and
// deletes the pool.
func TestReplicasAreKept(t *testing.T) {
	t.Parallel()
	g := start(t, served{})
	g.Token = g.stack.Token()
	f := newFleet(t, g)
	f.keep("server", 2)
	before := f.until("two that serve", ready(2))
	f.answered("one")
	serves := outside.Get[contract.Task](f.Client, "/v1/tasks/"+before.Replicas[0].Machine.TaskID)
	if serves.Trigger != "pool" || serves.Serves == nil || *serves.Serves != (contract.Serves{Pool: "own", Replica: "r1"}) {
		t.Errorf("got trigger %s of %+v, want pool and r1 of own", serves.Trigger, serves.Serves)
	}
	// Eight tasks fill all slots of both servers. Those on the killed replica have begun.
	many, ends := 300, map[string]int{}
	readers := make([]tokens, 8)
	tasks := make([]string, len(readers))
	for i := range readers {
		tasks[i] = f.create(contract.TaskRequest{ModelRef: "one", Prompt: "a long story", MaxTokens: &many})
		readers[i].read(t.Context(), g.Client, tasks[i], 1)
	}
	if err := syscall.Kill(f.living()["r1.model-one"][0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for i := range readers {
		readers[i].read(t.Context(), g.Client, tasks[i], many+1)
		if end := readers[i].end; end.Event == "end" || strings.Contains(end.Data, `"WORKER_RESET"`) {
			ends[end.Event]++
		}
	}
	// On a busy host a task of the replica may end before the kill.
	if ends["error"] < 1 || ends["error"] > 4 || ends["end"]+ends["error"] != len(readers) {
		t.Errorf("got ends %v, want four answers and four errors WORKER_RESET", ends)
	}
	for range 3 {
		f.answered("one")
	}
	after := f.until("another run of r1", func(h contract.PoolHealth) bool {
		return ready(2)(h) && h.Replicas[0].Machine.RunID != before.Replicas[0].Machine.RunID
	})
	if m := after.Replicas[0].Machine; m.LastRunID != before.Replicas[0].Machine.RunID || m.LastError == nil || m.Failures != 1 {
		t.Errorf("got %+v, want the fault of the run that was killed", m)
	}
	if after.Replicas[1].Machine.RunID != before.Replicas[1].Machine.RunID {
		t.Error("got another run of r2, want the same")
	}
	f.untilLiving("r1.model-one", "r2.model-one")

	f.keep("server", 3)
	f.until("three that serve", ready(3))
	f.keep("server", 1)
	f.until("one that serves", ready(1))
	f.untilLiving("r1.model-one")

	answer := f.Call(http.MethodPost, "/v1/pools/own/reload", `{"model": "two", "deadlineSeconds": 10}`)
	if answer.Status != http.StatusOK {
		t.Fatalf("reload: got %d %s, want 200", answer.Status, answer.Body)
	}
	f.until("one with the model two", func(h contract.PoolHealth) bool { return ready(1)(h) && h.Replicas[0].Machine.Model == "two" })
	f.untilLiving("r1.model-two")
	f.answered("two")

	last := f.health().Replicas[0].Machine.TaskID
	f.remove()
	if state := lastState(f.target, last); state != string(run.Cancelled) {
		t.Errorf("got %s, want Cancelled", state)
	}
	f.untilLiving()
}

// TestReloadLetsReplicasTakeTurns reloads two servers with the same model while one has a task.
// That one is replaced after the task, and at least one server serves at any time.
func TestReloadLetsReplicasTakeTurns(t *testing.T) {
	t.Parallel()
	g := start(t, served{})
	g.Token = g.stack.Token()
	f := newFleet(t, g)
	f.keep("server", 2)
	before := f.until("two that serve", ready(2))
	many := 700 // 7 s, longer than a replica without tasks needs to drain
	task := f.create(contract.TaskRequest{ModelRef: "one", Prompt: "a long story", MaxTokens: &many})
	var r tokens
	r.read(t.Context(), g.Client, task, 1)
	if answer := f.Call(http.MethodPost, "/v1/pools/own/reload", ""); answer.Status != http.StatusOK {
		t.Fatalf("reload: got %d %s, want 200", answer.Status, answer.Body)
	}
	f.until("two other runs", func(h contract.PoolHealth) bool {
		serving := 0
		for _, r := range h.Replicas {
			if r.Machine.State == string(fleet.ReplicaServing) {
				serving++
			}
		}
		if serving == 0 {
			t.Errorf("got the replicas %s, want one that serves", outside.Encode(t, h.Replicas))
		}
		return ready(2)(h) && h.Replicas[0].Machine.RunID != before.Replicas[0].Machine.RunID && h.Replicas[1].Machine.RunID != before.Replicas[1].Machine.RunID
	})
	if state := lastState(g, task); state != string(run.Completed) {
		t.Errorf("got %s of the task that a replica had, want Completed", state)
	}
}

// TestReplicasSurviveAKill kills Sortie while replicas start, and again while they serve.
// Afterwards there is one server per replica. After the deletion of the pool there is no
// server.
func TestReplicasSurviveAKill(t *testing.T) {
	t.Parallel()
	given := served{Data: t.TempDir()}
	first := spawn(t, given)
	first.Token = dataToken(t, first.TokenFile)
	f := newFleet(t, first.target)
	f.keep("server", 3)
	first.kill(syscall.SIGKILL)
	again := spawn(t, given)
	again.Token = first.Token
	f.target = again.target
	before := f.until("three that serve", ready(3))
	f.untilLiving("r1.model-one", "r2.model-one", "r3.model-one")
	again.kill(syscall.SIGKILL)
	third := spawn(t, given)
	third.Token = first.Token
	f.target = third.target
	after := f.until("three that serve", ready(3))
	for i, r := range after.Replicas {
		if r.Machine.RunID != before.Replicas[i].Machine.RunID {
			t.Errorf("got the run %s of %s, want %s still", r.Machine.RunID, r.ID, before.Replicas[i].Machine.RunID)
		}
	}
	f.answered("one")
	f.untilLiving("r1.model-one", "r2.model-one", "r3.model-one")
	third.kill(syscall.SIGTERM) // a stop ends the machines; the next start continues their runs
	f.untilLiving()
	third = spawn(t, given)
	third.Token = first.Token
	f.target = third.target
	f.until("three that serve", ready(3))
	f.untilLiving("r1.model-one", "r2.model-one", "r3.model-one")
	f.remove()
	third.kill(syscall.SIGKILL)
	last := spawn(t, given)
	last.Token = first.Token
	f.target = last.target
	f.untilLiving()
}

// TestFailingReplicaIsDelayed runs a server that ends at once, and then repairs its job.
func TestFailingReplicaIsDelayed(t *testing.T) {
	t.Parallel()
	g := start(t, served{})
	g.Token = g.stack.Token()
	f := newFleet(t, g)
	f.put("/v1/jobs/broken", f.job("fail"))
	f.keep("broken", 1)
	h := f.until("two failures", func(h contract.PoolHealth) bool {
		return len(h.Replicas) == 1 && h.Replicas[0].Machine.Failures >= 2 && !h.Replicas[0].Machine.RetryAt.IsZero()
	})
	if m := h.Replicas[0].Machine; m.LastError == nil || m.LastError.Code != "PROGRAM_EXIT" || h.Ready {
		t.Errorf("got ready %t and %+v, want not ready and the exit of the program", h.Ready, m)
	}
	f.put("/v1/jobs/broken", f.job())
	f.until("one that serves", ready(1))
}

// TestPoolOfMachinesIsChecked checks that refusals name the invalid field.
func TestPoolOfMachinesIsChecked(t *testing.T) {
	t.Parallel()
	g := start(t, served{})
	g.Token = g.stack.Token()
	f := newFleet(t, g)
	for name, row := range map[string]struct {
		engine, field string
		status        int
		anonymous     bool
	}{
		"no job":              {`"kind": "llamacpp", "model": "one", "machines": {"job": "", "count": 1}`, "engine.machines.job", 400, false},
		"unknown job":         {`"kind": "llamacpp", "model": "one", "machines": {"job": "none", "count": 1}`, "engine.machines.job", 422, false},
		"no replicas":         {`"kind": "llamacpp", "model": "one", "machines": {"job": "server", "count": 0}`, "engine.machines.count", 400, false},
		"port":                {`"kind": "llamacpp", "model": "one", "machines": {"job": "server", "count": 1, "port": 70000}`, "engine.machines.port", 400, false},
		"both":                {`"kind": "llamacpp", "model": "one", "replicas": [{"url": "http://127.0.0.1:1"}], "machines": {"job": "server", "count": 1}`, "engine.machines", 400, false},
		"caller has no token": {`"kind": "llamacpp", "model": "one", "machines": {"job": "server", "count": 1}`, "engine.machines.job", 422, true},
	} {
		c := *f.Client
		if row.anonymous {
			c.Token = ""
		}
		answer := c.Call(http.MethodPut, "/v1/pools/own", `{"engine": {`+row.engine+`}}`)
		var problem contract.Problem
		if err := json.Unmarshal(answer.Body, &problem); err != nil || answer.Status != row.status || problem.Field != row.field {
			t.Errorf("%s: got %d %s, want %d of %s", name, answer.Status, answer.Body, row.status, row.field)
		}
	}
}

// dataToken returns the token in a file.
func dataToken(t *testing.T, file string) string {
	t.Helper()
	token, err := stack.ReadToken(file)
	if err != nil {
		t.Fatal(err)
	}
	return token
}
