package suite

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/local/proof/suite/scripts"

	"github.com/sortie-dev/sortie/local/proof/engines"
	"github.com/sortie-dev/sortie/local/proof/stacktest"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// EngineImage is an image of the target whose program is EngineServer.
const EngineImage = "programs/engine:latest"

// engineServerName is the argument by which a test binary runs EngineServer.
const engineServerName = "engine-server"

// ProgramsOf returns the programs that the test binary of a target must have; its TestMain
// registers them. environ is the environment of the process.
func ProgramsOf(environ []string) map[string]stacktest.Program {
	return map[string]stacktest.Program{scripts.WorkerName: scripts.Worker(environ), engineServerName: EngineServer}
}

// Images returns the images, besides the worker's, that the suite runs in machines that are
// processes of this host. executable is the test binary.
func Images(executable string) map[string][]string {
	return map[string][]string{ProgramImage: {"/bin/sh"}, EngineImage: {executable, engineServerName}}
}

// EngineServer is an inference server with the protocol of llama-server. It listens at
// ENGINE_HOST and ENGINE_PORT until it is ended. If ENGINE_HOST means all addresses, it uses
// only the address of its machine, because machines that are processes share a host.
func EngineServer(_ []string, env map[string]string) int {
	host := env["ENGINE_HOST"]
	if at, err := netip.ParseAddr(host); err == nil && at.IsUnspecified() && env["FLY_PRIVATE_IP"] != "" {
		host = env["FLY_PRIVATE_IP"]
	}
	mock := mockengine.New(mockengine.Config{Clock: clock.System{}, Slots: 4, TokenEvery: 10 * time.Millisecond})
	server := &http.Server{Addr: net.JoinHostPort(host, env["ENGINE_PORT"]), Handler: engines.Handler(platform.EngineLlamaCpp, mock), ReadHeaderTimeout: time.Second}
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func replicaMachines() []Test {
	needs := []Capability{Programs, Servers}
	return []Test{
		{Name: "replicas that Sortie runs answer and are kept at their number", Requires: needs, Run: replicasAreKept},
	}
}

// replicas waits until a pool has exactly n replicas and all of them serve and are ready.
func (c *Case) replicas(pool string, n int) (found []contract.ReplicaHealth) {
	c.T.Helper()
	c.eventually(fmt.Sprintf("%d replicas that are ready", n), func() bool {
		found = outside.Get[contract.PoolHealth](c.Client, pool+"/health").Replicas
		return len(found) == n && !slices.ContainsFunc(found, func(r contract.ReplicaHealth) bool {
			return !r.Ready || r.Machine == nil || r.Machine.State != "serving"
		})
	})
	return found
}

// replicaEnded waits until the run of a replica has ended.
func (c *Case) replicaEnded(r contract.ReplicaHealth) {
	c.T.Helper()
	c.eventually("end of the run of "+r.ID, func() bool {
		return slices.Contains([]string{"Completed", "Failed", "Cancelled"}, outside.Get[contract.Task](c.Client, "/v1/tasks/"+r.Machine.TaskID).State)
	})
}

// replicasAreKept checks a pool that runs its replicas. They answer a task; a replica whose run
// is cancelled is replaced; a reload replaces all; a smaller count ends some; and the deletion
// of the pool ends all.
func replicasAreKept(c *Case) {
	model := c.Batch("model")
	send[contract.Model](c, http.MethodPost, "/v1/catalog/models", `{"id":"`+model+`","engines":["llamacpp"],"workloads":["completion"]}`, http.StatusCreated)
	job := c.job("server", document{
		"image": EngineImage, "command": []string{"serve"}, "policy": document{"cancelGraceSeconds": 5}, "retryConfig": document{"maxRetries": 0},
	})
	kept := func(count int) string {
		machines := document{"job": jobID(job), "count": count, "port": 8080}
		return string(outside.Encode(c.T, document{"engine": document{"kind": "llamacpp", "model": model, "slots": 2, "machines": machines}}))
	}
	pool := c.poolPath("own")
	send[contract.Pool](c, http.MethodPut, pool, kept(2), http.StatusCreated)
	first := c.replicas(pool, 2)
	const tokens = 12
	task := c.ask(model, fmt.Sprintf(`,"max_tokens":%d`, tokens))
	if events := c.streamed(task, ""); events[len(events)-1].Event != "end" || tokensOf(events) != tokens {
		c.T.Fatalf("got %v of a replica, want %d tokens and the end", events, tokens)
	}
	c.cancel(first[0].Machine.TaskID, http.StatusAccepted)
	c.replicaEnded(first[0])
	second := c.replicas(pool, 2)
	if second[0].Machine.RunID == first[0].Machine.RunID || second[1].Machine.RunID != first[1].Machine.RunID {
		c.T.Errorf("got the runs %+v and %+v after the first one was cancelled, want another one beside %s", second[0].Machine, second[1].Machine, first[1].Machine.RunID)
	}
	send[contract.Pool](c, http.MethodPost, pool+"/reload", `{}`, http.StatusOK)
	for _, r := range second {
		c.replicaEnded(r)
	}
	third := c.replicas(pool, 2)
	send[contract.Pool](c, http.MethodPut, pool, kept(1), http.StatusOK)
	c.replicaEnded(third[1])
	c.replicas(pool, 1)
	c.removePool(pool)
	c.replicaEnded(third[0])
	if answer := c.Call(http.MethodDelete, "/v1/catalog/models/"+model, ""); answer.Status != http.StatusNoContent {
		c.T.Errorf("got %d %s for the removal of the model, want 204", answer.Status, answer.Body)
	}
}
