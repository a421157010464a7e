//go:build containers

package stack_test

import (
	"archive/tar"
	"bytes"
	"context"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// waiting is a program that ends with code 7 on SIGTERM.
const waiting = `package main

import ("fmt"; "os"; "os/signal"; "syscall")

func main() {
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	fmt.Println("waiting")
	<-terminated
	os.Exit(7)
}
`

// engine is a client of the engine in DOCKER_HOST, which "make test-containers" starts.
type engine struct {
	t      *testing.T
	client *http.Client
}

func realEngine(t *testing.T) engine {
	t.Helper()
	socket, ok := strings.CutPrefix(os.Getenv("DOCKER_HOST"), "unix://")
	if !ok {
		t.Fatal("no container engine: run make test-containers, or set DOCKER_HOST to unix://PATH")
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return engine{t, &http.Client{Transport: transport}}
}

func (e engine) post(path, kind string, body []byte) {
	e.t.Helper()
	e.call(http.MethodPost, path, kind, body)
}

// call calls the engine and returns the body of its answer.
func (e engine) call(method, path, kind string, body []byte) []byte {
	e.t.Helper()
	request, err := http.NewRequestWithContext(e.t.Context(), method, "http://engine/v1.41"+path, bytes.NewReader(body))
	if err != nil {
		e.t.Fatal(err)
	}
	request.Header.Set("Content-Type", kind)
	got, err := e.client.Do(request)
	if err != nil {
		e.t.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := text.ReadFrom(got.Body); err != nil || got.Body.Close() != nil || got.StatusCode >= http.StatusMultipleChoices {
		e.t.Fatalf("%s: got %s %s, %v", path, got.Status, text.String(), err)
	}
	return text.Bytes()
}

// build builds an image that has only the program of a package.
func (e engine) build(image, what string) {
	e.t.Helper()
	program := filepath.Join(e.t.TempDir(), "program")
	compile := exec.CommandContext(e.t.Context(), "go", "build", "-trimpath", "-o", program, what)
	compile.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := compile.CombinedOutput(); err != nil {
		e.t.Fatalf("cannot build %s: %v: %s", what, err, text)
	}
	code, err := os.ReadFile(program)
	if err != nil {
		e.t.Fatal(err)
	}
	var archive bytes.Buffer
	files := tar.NewWriter(&archive)
	if err := files.WriteHeader(&tar.Header{Name: "program", Mode: 0o755, Size: int64(len(code))}); err != nil {
		e.t.Fatal(err)
	}
	if _, err := files.Write(code); err != nil {
		e.t.Fatal(err)
	}
	if err := files.Close(); err != nil {
		e.t.Fatal(err)
	}
	query := url.Values{"fromSrc": {"-"}, "repo": {image}, "changes": {`ENTRYPOINT ["/program"]`}}
	e.post("/images/create?"+query.Encode(), "application/x-tar", archive.Bytes())
}

// TestRealExport exports with the image of functions/worker in a container, which reaches
// the API, the entity API and the object store through the gates.
func TestRealExport(t *testing.T) {
	t.Parallel()
	const image = "localhost/sortie-worker:1"
	e := realEngine(t)
	e.build(image, "../../../functions/worker/bootstrap")
	g := start(t, served{Engine: os.Getenv("DOCKER_HOST"), Settings: map[string]string{"SORTIE_EXPORT_IMAGE": image}})
	if got := g.Call(http.MethodPut, "/v1/pools/default", `{"limit": 0, "runner": "container"}`); got.Status >= http.StatusMultipleChoices {
		t.Fatalf("got %d %s", got.Status, got.Body)
	}
	task := g.post(contract.ExportOptions{})
	got := g.End(task)
	if got.Status != contract.StatusSuccess || len(got.MachineID) != 64 {
		t.Errorf("got %+v, want an export by a container", got)
	}
	if text := g.Call(http.MethodGet, "/download/"+task, ""); text.Status != http.StatusOK || len(text.Body) == 0 {
		t.Errorf("got %d with %d bytes, want the document", text.Status, len(text.Body))
	}
}

// TestRealAdoption kills the stack during a run. The next stack adopts the container and reads
// its exit.
func TestRealAdoption(t *testing.T) {
	t.Parallel()
	const image = "localhost/sortie-waiting:1"
	e := realEngine(t)
	source := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(source, []byte(waiting), 0o600); err != nil {
		t.Fatal(err)
	}
	e.build(image, source)
	given := served{Data: t.TempDir(), Engine: os.Getenv("DOCKER_HOST")}
	g := spawn(t, given)
	task := g.run(`{"image": "` + image + `", "retryConfig": {"maxRetries": 0}}`)
	g.Running(task)
	machine := g.Await(task, func(s contract.Status) bool { return s.MachineID != "" }).MachineID
	g.kill(syscall.SIGKILL)
	g = spawn(t, given)
	e.post("/containers/"+machine+"/kill?signal=SIGTERM", "application/json", nil)
	got := g.End(task)
	if got.Attempt != 1 || got.MachineID != machine || !strings.Contains(got.Error, "exited with code 7") {
		t.Errorf("got %+v, want attempt 1 with the program's code", got)
	}
	if text := g.Call(http.MethodGet, "/v1/tasks/"+task+"/logs", ""); !strings.Contains(string(text.Body), "waiting") {
		t.Errorf("got log %s, want the program's output", text.Body)
	}
}
