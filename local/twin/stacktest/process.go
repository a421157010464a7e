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

// Process is a stack in a process of its own. It is safe for use by many
// goroutines.
type Process struct {
	command *exec.Cmd
	ready   chan struct{}
	ended   chan struct{}

	mu        sync.Mutex
	addresses stack.Addresses
	state     *os.ProcessState
}

// Launch starts a process whose log goes to log, and does not wait until it
// serves. The caller ends it with End.
func Launch(c Config, log io.Writer) (*Process, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find this program: %w", err)
	}
	input, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("cannot tell the stack its configuration: %w", err)
	}
	p := &Process{command: exec.Command(executable, wordServe), ready: make(chan struct{}), ended: make(chan struct{})}
	p.command.Stdin, p.command.Stderr = bytes.NewReader(input), log
	output, err := p.command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot listen to the stack: %w", err)
	}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the stack: %w", err)
	}
	go p.follow(output)
	return p, nil
}

// follow reads the addresses and waits for the end.
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

// Ready is closed once the stack serves. One that fails to start ends.
func (p *Process) Ready() <-chan struct{} { return p.ready }

// Ended is closed once the process is gone.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Addresses are those of a stack that is ready.
func (p *Process) Addresses() stack.Addresses {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.addresses
}

// Signal sends a signal; to a process that is gone it sends none.
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

// End sends a signal, waits for the process's end and gives its exit code, -1
// where a signal ended it.
func (p *Process) End(s syscall.Signal) (int, error) {
	err := p.Signal(s)
	<-p.ended
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state.ExitCode(), err
}
