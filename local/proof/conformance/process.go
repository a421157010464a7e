//go:build unix

package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/sortie-dev/sortie/shared/clock"
)

// process is a worker's command, in a group of its own.
type process struct {
	cmd    *exec.Cmd
	output output
	ended  chan struct{}
	at     time.Time // when it ended
}

// output keeps the first megabytes of what a worker writes.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

const maxOutput = 4 << 20

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(p[:min(len(p), maxOutput-min(maxOutput, o.text.Len()))])
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// launch starts a command.
func launch(clock clock.Clock, argv, env []string) (*process, error) {
	p := &process{cmd: exec.Command(argv[0], argv[1:]...), ended: make(chan struct{})} //nolint:gosec,noctx // it is what the caller asks to run, and it is ended by stop
	p.cmd.Env = env
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.WaitDelay = time.Second
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the worker: %w", err)
	}
	go func() {
		_ = p.cmd.Wait()
		p.at = clock.Now()
		close(p.ended)
	}()
	return p, nil
}

// terminate sends SIGTERM, as the platform does: to the first process.
func (p *process) terminate() { _ = p.cmd.Process.Signal(syscall.SIGTERM) }

// stop ends what is left of it.
func (p *process) stop() {
	if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		_ = p.cmd.Process.Kill()
	}
	<-p.ended
}
