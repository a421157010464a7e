//go:build unix

package wrap

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/sortie/conformance"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// asSelf makes the test binary run as sortie-exec. It is a process of its own,
// because sortie-exec waits for every child process.
const asSelf = "SORTIE_TEST_EXEC"

func TestMain(m *testing.M) {
	if os.Getenv(asSelf) != "" {
		os.Exit(Main(os.Args[1:], os.Environ()))
	}
	os.Exit(m.Run())
}

// On a busy host a program may need many seconds to handle SIGTERM, and a call to be answered.
// cancelGrace is longer than the limit of self, so a test in which it passes fails.
// heartbeatTimeout gives each call the longest limit.
const (
	cancelGrace      = time.Hour
	heartbeatTimeout = 10 * time.Minute
)

// fixture is a control plane and the environment of sortie-exec.
type fixture struct {
	t     *testing.T
	plane *conformance.Plane
	dir   string
	env   []string
}

func setup(t *testing.T, answer func(c *conformance.Call, n int) *conformance.Answer) *fixture {
	t.Helper()
	return setupInterval(t, 50*time.Millisecond, answer)
}

// setupInterval is like setup, with a heartbeat interval.
func setupInterval(t *testing.T, interval time.Duration, answer func(c *conformance.Call, n int) *conformance.Answer) *fixture {
	t.Helper()
	plane, err := conformance.NewPlane(clock.System{}, contract.TaskEnvelope{
		TaskID: "task-1", Attempt: 2, TraceParent: "00-of-the-envelope", HeartbeatIntervalMS: interval.Milliseconds(), HeartbeatTimeoutMS: heartbeatTimeout.Milliseconds(), CancelGracePeriodMS: cancelGrace.Milliseconds(),
	}, answer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(plane.Close)
	variable, err := plane.Variable()
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{t, plane, t.TempDir(), []string{variable, "TRACEPARENT=inherited", "TOKEN=" + plane.Envelope().TaskToken}}
}

// result is the exit code and the output of sortie-exec.
type result struct {
	code           int
	stdout, stderr string
}

// run runs sortie-exec to its end.
func (s *fixture) run(args ...string) result {
	s.t.Helper()
	cmd, out := self(s.t, s.env, args...)
	cmd.Dir = s.dir
	return ended(s.t, cmd.Run(), out)
}

func self(t *testing.T, env []string, args ...string) (*exec.Cmd, *[2]bytes.Buffer) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(slices.Concat([]string{"PATH=" + os.Getenv("PATH"), asSelf + "=1"}, env), "GOCOVERDIR="+t.TempDir())
	out := &[2]bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = &out[0], &out[1]
	return cmd, out
}

func ended(t *testing.T, err error, out *[2]bytes.Buffer) result {
	t.Helper()
	r := result{stdout: out[0].String(), stderr: out[1].String()}
	if exit, ok := err.(*exec.ExitError); ok { //nolint:errorlint // os/exec returns it unwrapped
		r.code = exit.ExitCode()
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			t.Fatalf("sortie-exec was killed: %v", err)
		}
	} else if err != nil {
		t.Fatal(err)
	}
	return r
}

// of returns the calls of an endpoint.
func (s *fixture) of(endpoint string) []*conformance.Call {
	return slices.DeleteFunc(s.plane.Calls(), func(c *conformance.Call) bool { return c.Endpoint != endpoint })
}

// completed returns the body of completed. A call whose answer was late is repeated.
func (s *fixture) completed() map[string]any {
	s.t.Helper()
	calls := s.of("completed")
	if len(calls) == 0 {
		s.t.Fatal("got no completed, want one")
	}
	for _, c := range calls {
		if !bytes.Equal(c.Body, calls[0].Body) {
			s.t.Fatalf("got completed with %s and then %s, want the same", calls[0].Body, c.Body)
		}
	}
	return calls[0].Fields
}

// log returns the sent output, or the uploaded log if no output was sent.
func (s *fixture) log() string {
	if text, ok := s.plane.Object(s.plane.Envelope().Log.Key); ok {
		return string(text)
	}
	return s.plane.Output("")
}

// file returns a path in a temporary folder.
func file(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(t.TempDir(), name)
}

// appears waits for a file that ends in a newline and returns its text.
func appears(t *testing.T, name string) string {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		if text, err := os.ReadFile(name); err == nil && strings.HasSuffix(string(text), "\n") {
			return strings.TrimSpace(string(text))
		}
		select {
		case <-deadline:
			t.Fatalf("got no file %s after two minutes", name)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
