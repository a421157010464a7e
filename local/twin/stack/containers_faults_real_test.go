//go:build containers

package stack_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// cable is a connection to the engine that a test can cut.
type cable struct {
	address string
	cut     atomic.Bool
}

func newCable(t *testing.T) *cable {
	t.Helper()
	c := &cable{}
	socket := strings.TrimPrefix(os.Getenv("DOCKER_HOST"), "unix://")
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "engine"}) }, Transport: transport,
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.cut.Load() {
			panic(http.ErrAbortHandler)
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { web.Close(); transport.CloseIdleConnections() })
	c.address = "tcp://" + strings.TrimPrefix(web.URL, "http://")
	return c
}

// buildWaiting builds an image with the program waiting.
func (e engine) buildWaiting(image string) {
	e.t.Helper()
	source := filepath.Join(e.t.TempDir(), "main.go")
	if err := os.WriteFile(source, []byte(waiting), 0o600); err != nil {
		e.t.Fatal(err)
	}
	e.build(image, source)
}

// machine waits until the attempt of a task runs and returns its container.
func (g *target) machine(task string, attempt int) string {
	g.T.Helper()
	return g.Await(task, func(s contract.Status) bool { return s.Attempt == attempt && s.State == "Running" && s.MachineID != "" }).MachineID
}

// TestRealEngineIsAway ends the program of a run while the stack cannot reach the engine.
func TestRealEngineIsAway(t *testing.T) {
	t.Parallel()
	const image = "localhost/sortie-away:1"
	e, c := realEngine(t), newCable(t)
	e.buildWaiting(image)
	g := start(t, served{Engine: c.address})
	task := g.run(`{"image": "` + image + `", "retryConfig": {"maxRetries": 0}}`)
	machine := g.machine(task, 1)
	c.cut.Store(true)
	e.post("/containers/"+machine+"/kill?signal=SIGTERM", "application/json", nil)
	e.post("/containers/"+machine+"/wait", "application/json", nil)
	late := g.run(`{"image": "` + image + `"}`)
	if got := outside.Get[contract.Task](g.Client, "/v1/tasks/"+task); got.State != "Running" {
		t.Errorf("got %+v, want a run whose machine cannot be reached", got)
	}
	c.cut.Store(false)
	if got := g.End(task); got.Attempt != 1 || !strings.Contains(got.Error, "exited with code 7") {
		t.Errorf("got %+v, want attempt 1 with the program's code", got)
	}
	g.machine(late, 1)
}

// TestRealContainerIsRemoved removes the container of a run by hand. The run is retried after
// its start limit, because an engine may not know a new container before that.
func TestRealContainerIsRemoved(t *testing.T) {
	t.Parallel()
	const image = "localhost/sortie-removed:1"
	e := realEngine(t)
	e.buildWaiting(image)
	g := start(t, served{Engine: os.Getenv("DOCKER_HOST")})
	task := g.run(`{"image": "` + image + `", "retryConfig": {"maxRetries": 1, "initialDelay": "1s"}, "policy": {"startTimeoutSeconds": 5}}`)
	first := g.machine(task, 1)
	e.call(http.MethodDelete, "/containers/"+first+"?force=true", "application/json", nil)
	second := g.machine(task, 2)
	if second == first {
		t.Errorf("got container %s twice, want another one", first)
	}
	e.post("/containers/"+second+"/kill?signal=SIGTERM", "application/json", nil)
	if got := g.End(task); got.Attempt != 2 || !strings.Contains(got.Error, "exited with code 7") {
		t.Errorf("got %+v, want attempt 2 with the program's code", got)
	}
	var left []struct{ ID string }
	running := "/containers/json?filters=" + url.QueryEscape(`{"label":["dev.sortie.run=`+task+`"]}`)
	if err := json.Unmarshal(e.call(http.MethodGet, running, "application/json", nil), &left); err != nil || len(left) > 0 {
		t.Errorf("got %v, %v after the run, want no running container", left, err)
	}
}
