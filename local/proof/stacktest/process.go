package stacktest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"github.com/sortie-dev/sortie/local/twin/stack"
)

// Process is a stack in a separate process. It is safe for concurrent use.
type Process struct {
	command *exec.Cmd
	ready   chan struct{}
	ended   chan struct{}

	mu        sync.Mutex
	addresses stack.Addresses
	state     *os.ProcessState
}

// Launch starts a process that writes its log to log. It does not wait until the stack serves.
// The caller stops the process with End.
func Launch(c Config, log io.Writer) (*Process, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find this program: %w", err)
	}
	input, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the configuration: %w", err)
	}
	p := &Process{command: exec.Command(executable, wordServe), ready: make(chan struct{}), ended: make(chan struct{})}
	p.command.Stdin, p.command.Stderr = bytes.NewReader(input), log
	output, err := p.command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot read the output of the stack: %w", err)
	}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the stack: %w", err)
	}
	go p.follow(output)
	return p, nil
}

// follow reads the addresses and waits for the end of the process.
func (p *Process) follow(output io.Reader) {
	reader := bufio.NewReader(output)
	line, err := reader.ReadBytes('\n')
	var addresses stack.Addresses
	if err == nil && json.Unmarshal(line, &addresses) == nil {
		p.mu.Lock()
		p.addresses = addresses
		p.mu.Unlock()
		close(p.ready)
	}
	_, _ = io.Copy(io.Discard, reader)
	_ = p.command.Wait()
	p.mu.Lock()
	p.state = p.command.ProcessState
	p.mu.Unlock()
	close(p.ended)
}

// Ready returns a channel that is closed when the stack serves. The process of a stack that
// cannot start ends.
func (p *Process) Ready() <-chan struct{} { return p.ready }

// Ended returns a channel that is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Addresses returns the addresses of a ready stack.
func (p *Process) Addresses() stack.Addresses {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.addresses
}

// Signal sends a signal unless the process has ended.
func (p *Process) Signal(s syscall.Signal) error {
	select {
	case <-p.ended:
		return nil
	default:
	}
	if err := p.command.Process.Signal(s); err != nil {
		select {
		case <-p.ended:
			return nil
		default:
			return fmt.Errorf("cannot signal the stack: %w", err)
		}
	}
	return nil
}

// End sends a signal, waits for the process and returns its exit code. The code is -1 if a
// signal ended it.
func (p *Process) End(s syscall.Signal) (int, error) {
	err := p.Signal(s)
	<-p.ended
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state.ExitCode(), err
}
