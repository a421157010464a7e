package flymachines

import (
	"context"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor/output"
)

// Function is a program that runs in the server's process. The first signal cancels its
// context. It returns the exit code and writes the machine's output to out.
type Function func(ctx context.Context, p Program, out io.Writer) int

// Functions is a Starter whose programs are functions, for benchmarks and tests. Argv[0] names
// the function. Functions end with the server. After SIGKILL the program counts as ended at
// once, although the function returns only when it checks its context.
type Functions struct {
	Programs map[string]Function
	Clock    clock.Clock
}

// Start calls the function in a goroutine.
func (f Functions) Start(p Program) (Process, error) {
	ctx, cancel := context.WithCancel(context.Background())
	c := &call{startedAt: f.Clock.Now(), clock: f.Clock, cancel: cancel, ended: make(chan struct{})}
	program, ok := f.Programs[p.Argv[0]]
	if !ok {
		c.end(Exit{Code: 127, Problem: fmt.Sprintf("there is no function %q", p.Argv[0])})
		return c, nil
	}
	go c.run(ctx, program, p)
	return c, nil
}

// Find returns nil: functions end with the server.
func (f Functions) Find(Program) (Process, error) { return nil, nil }

type call struct {
	startedAt time.Time
	clock     clock.Clock
	cancel    context.CancelFunc
	once      sync.Once
	ended     chan struct{}
	exit      Exit
}

func (c *call) run(ctx context.Context, program Function, p Program) {
	out := output.NewWriter(p.Dir, p.OutputLimit)
	exit := Exit{Code: 2, Problem: "the function panicked"}
	defer func() {
		if r := recover(); r != nil {
			exit.Problem = fmt.Sprintf("the function panicked: %v", r)
		}
		if err := out.Close(); err != nil && exit.Problem == "" {
			exit.Problem = err.Error()
		}
		c.end(exit)
	}()
	exit = Exit{Code: program(ctx, p, out)}
}

func (c *call) end(exit Exit) {
	c.once.Do(func() {
		exit.At = c.clock.Now()
		c.exit = exit
		c.cancel()
		close(c.ended)
	})
}

// StartedAt returns the time of the call.
func (c *call) StartedAt() time.Time { return c.startedAt }

// Signal cancels the function's context. SIGKILL also ends Wait.
func (c *call) Signal(s syscall.Signal) error {
	if s == syscall.SIGKILL {
		c.end(killed(time.Time{}, ""))
	}
	c.cancel()
	return nil
}

// Wait waits until the function returns or is killed.
func (c *call) Wait() (Exit, error) {
	<-c.ended
	return c.exit, nil
}
