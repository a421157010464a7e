package porttest

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/port"
)

// What RunnerProgram reads from its environment.
const (
	runnerDoes = "RUNNER_DOES" // "exit N", "rest" or "ignore"
	runnerEar  = "RUNNER_EAR"  // an address that is told when it is ready
	runnerSays = "RUNNER_SAYS" // and what it is told
)

// RunnerProgram is what a harness's Image runs. env is its environment;
// terminated is closed or sent to by SIGTERM, which the program gets instead of
// dying of it. killed is closed by SIGKILL where the program is a goroutine; a
// process has nil. It returns the exit code.
func RunnerProgram[T any](env func(string) string, terminated <-chan T, killed <-chan struct{}) int {
	if ear := env(runnerEar); ear != "" {
		conn, err := net.Dial("tcp", ear)
		if err != nil {
			return 70
		}
		_, err = fmt.Fprintln(conn, env(runnerSays))
		if closed := conn.Close(); err != nil || closed != nil {
			return 70
		}
	}
	switch does := env(runnerDoes); does {
	case "rest":
		select {
		case <-terminated:
			return 0
		case <-killed:
			return 137
		}
	case "ignore":
		<-killed
		return 137
	default:
		code, err := strconv.Atoi(strings.TrimPrefix(does, "exit "))
		if err != nil {
			return 64
		}
		return code
	}
}

// ear hears from programs that are ready, whether or not they are processes.
type ear struct {
	t *testing.T
	l net.Listener
}

func newEar(t *testing.T) ear {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return ear{t, l}
}

// with lets the machine's program tell when it is ready.
func (e ear) with(spec port.LaunchSpec, says string) port.LaunchSpec {
	spec.Env[runnerEar], spec.Env[runnerSays] = e.l.Addr().String(), says
	return spec
}

func (e ear) hear() string {
	e.t.Helper()
	conn, err := e.l.Accept()
	if err != nil {
		e.t.Fatal(err)
	}
	defer conn.Close()
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		e.t.Fatal(err)
	}
	return strings.TrimSpace(line)
}
