package server

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/localstack/step"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// The test binary is also the Python that runs LocalStack, and the Java that LocalStack starts.
func TestMain(m *testing.M) {
	switch {
	case slices.Contains(os.Args, "localstack.runtime.main"):
		localStack()
	case len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "-Dsortie.localstack="):
		ignored := make(chan os.Signal, 1)
		signal.Notify(ignored, syscall.SIGTERM)
		_ = os.Stdout.Close() // its command line is visible now
		for range ignored {   // select {} would be a deadlock without cgo
		}
	}
	os.Exit(m.Run())
}

// localStack starts another process that survives it, and then listens. If the home folder is
// named broken, it ends immediately.
func localStack() {
	if filepath.Base(os.Getenv("HOME")) == "broken" {
		fmt.Println("no parts were found")
		os.Exit(1)
	}
	child := exec.Command(os.Args[0], "-Dsortie.localstack="+os.Getenv("SORTIE_LOCALSTACK"), "x")
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	said, err := child.StdoutPipe()
	if err != nil {
		panic(err)
	}
	if err := child.Start(); err != nil {
		panic(err)
	}
	_, _ = io.Copy(io.Discard, said)
	err = http.ListenAndServe(os.Getenv("GATEWAY_LISTEN"), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"stage": "READY", "completed": %t}`, r.URL.Path == "/_localstack/init/ready")
	}))
	fmt.Println(err)
	os.Exit(1)
}

// setup returns a server that was never started, and a way to run it.
func setup(t *testing.T) (Server, Python, *[]string) {
	t.Helper()
	port, err := step.FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	s := Server{
		Port: port, Dir: filepath.Join(t.TempDir(), "server"), Clock: clock.System{},
		Say: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) },
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil { //nolint:usetesting // the test's context has ended
			t.Error(err)
		}
	})
	return s, Python{Python: executable, Java: "java", Plugin: "/plugin", DynamoDB: "/jars", Home: t.TempDir(), Path: "/bin"}, &said
}

func TestStartAndStop(t *testing.T) {
	t.Parallel()
	s, way, _ := setup(t)
	if s.Running(t.Context()) {
		t.Error("it runs before it was started")
	}
	if err := s.Start(t.Context(), way); err != nil {
		t.Fatal(err)
	}
	if !s.Running(t.Context()) {
		t.Error("it does not run")
	}
	if pids := s.pids(t); len(pids) != 2 {
		t.Errorf("its processes are %v, want the server and one that it started", pids)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if pids := s.pids(t); len(pids) != 0 {
		t.Errorf("processes %v are left", pids)
	}
	if _, err := os.Stat(s.Dir); !os.IsNotExist(err) {
		t.Errorf("its folder is left: %v", err)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Errorf("a second stop: %v", err)
	}
}

// A deployment may be built while LocalStack is still being installed.
func TestPreparedFilesStay(t *testing.T) {
	t.Parallel()
	s, way, _ := setup(t)
	prepared := filepath.Join(s.Dir, "deployment", "template")
	if err := os.MkdirAll(filepath.Dir(prepared), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(prepared, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context(), way); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(prepared); err != nil {
		t.Error(err)
	}
}

func TestSecondStart(t *testing.T) {
	t.Parallel()
	s, way, said := setup(t)
	for range 2 {
		if err := s.Start(t.Context(), way); err != nil {
			t.Fatal(err)
		}
	}
	if pids := s.pids(t); len(pids) != 2 || !strings.Contains((*said)[1], "already runs") {
		t.Errorf("processes %v, said %q", pids, *said)
	}
}

func TestStartRemovesLeftovers(t *testing.T) {
	t.Parallel()
	s, way, _ := setup(t)
	if err := s.Start(t.Context(), way); err != nil {
		t.Fatal(err)
	}
	before := s.pids(t)
	noted, err := s.state()
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(noted.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for s.Ready(t.Context()) {
		s.pause(t.Context())
	}
	if err := s.Start(t.Context(), way); err != nil {
		t.Fatal(err)
	}
	for _, pid := range s.pids(t) {
		if slices.Contains(before, pid) {
			t.Errorf("process %d of the server before is left", pid)
		}
	}
}

func TestServerEndsAtOnce(t *testing.T) {
	t.Parallel()
	s, way, _ := setup(t)
	way.Home = filepath.Join(way.Home, "broken")
	err := s.Start(t.Context(), way)
	if err == nil || !strings.Contains(err.Error(), "no parts were found") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(s.Dir); !os.IsNotExist(err) {
		t.Errorf("its folder is left: %v", err)
	}
}

func TestTakenPort(t *testing.T) {
	t.Parallel()
	s, way, _ := setup(t)
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", s.Port))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_ = connection.Close()
		}
	}()
	if err := s.Start(t.Context(), way); err == nil || !strings.Contains(err.Error(), "LOCALSTACK_PORT") {
		t.Errorf("error %v", err)
	}
}

// A folder whose name has this name as a prefix belongs to another server.
func TestOtherProcessesAreIgnored(t *testing.T) {
	t.Parallel()
	const dir = "/a/server-45"
	for line, want := range map[string]bool{
		"python -m localstack.runtime.main /a/server-45 ":       true,
		"python -m localstack.runtime.main /a/server-4566 ":     false,
		"java -Xmx256m -Dsortie.localstack=/a/server-45 -cp x ": true,
		"java -Dsortie.localstack=/a/server-4566 -cp x ":        false,
		"/a/server-45/files/tmp/lambda/b/f/code/bootstrap ":     true,
		"/a/server-4566/files/tmp/lambda/b/f/code/bootstrap ":   false,
		"worker player /a/server-45/machines/plays ":            true,
		"tail -f /a/server-45/log ":                             false,
	} {
		if got := ofServer([]byte(line), dir); got != want {
			t.Errorf("%q: %t", line, got)
		}
	}
}

func (s Server) pids(t *testing.T) []int {
	t.Helper()
	pids, err := s.processes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return pids
}
