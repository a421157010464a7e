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

// Environment variables of RunnerProgram.
const (
	envDoes    = "RUNNER_DOES"    // "exit N", "rest" or "ignore"
	envAddress = "RUNNER_ADDRESS" // the address to which the program writes the text in envSays when it is ready
	envSays    = "RUNNER_SAYS"    // the text
)

// RunnerProgram is the program of a harness's Image. It returns the exit code. env returns its
// environment variables. terminated is closed or receives a value on SIGTERM, which the program
// handles. killed is closed on SIGKILL if the program is a goroutine; it is nil for a process.
func RunnerProgram[T any](env func(string) string, terminated <-chan T, killed <-chan struct{}) int {
	if listener := env(envAddress); listener != "" {
		conn, err := net.Dial("tcp", listener)
		if err != nil {
			return 70
		}
		_, err = fmt.Fprintln(conn, env(envSays))
		if closed := conn.Close(); err != nil || closed != nil {
			return 70
		}
	}
	switch does := env(envDoes); does {
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

// listener receives a line from each program when it is ready.
type listener struct {
	t *testing.T
	l net.Listener
}

func newListener(t *testing.T) listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return listener{t, l}
}

// with makes the program of the machine report that it is ready.
func (e listener) with(spec port.LaunchSpec, says string) port.LaunchSpec {
	spec.Env[envAddress], spec.Env[envSays] = e.l.Addr().String(), says
	return spec
}

func (e listener) receive() string {
	e.t.Helper()
	conn, err := e.l.Accept()
	if err != nil {
		e.t.Fatal(err)
	}
	defer conn.Close()
	queue, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		e.t.Fatal(err)
	}
	return strings.TrimSpace(queue)
}
