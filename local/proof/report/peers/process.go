package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a process of a peer's server.
type process struct {
	command *exec.Cmd
	ended   chan error
}

// launch starts a program, whose output goes to a file of the folder.
func launch(folder string, env []string, path string, args ...string) (*process, error) {
	log, err := os.OpenFile(filepath.Join(folder, filepath.Base(path)+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	command := exec.Command(path, args...)
	command.Env, command.Stdout, command.Stderr = append(os.Environ(), env...), log, log
	if err := command.Start(); err != nil {
		return nil, err
	}
	p := &process{command, make(chan error, 1)}
	go func() { p.ended <- command.Wait() }()
	return p, nil
}

// kill kills the process alone, as a machine that runs out of memory does.
func (p *process) kill() error { return p.signal(syscall.SIGKILL) }

// stop ends the process, and kills it after 10 seconds.
func (p *process) stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		_ = p.kill()
	}
}

func (p *process) signal(s syscall.Signal) error {
	if err := p.command.Process.Signal(s); err != nil {
		return err
	}
	<-p.ended
	return nil
}

// resident returns the resident memory of the process in bytes.
func (p *process) resident() int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(text, []byte("VmRSS:"))
	n, err := strconv.ParseInt(string(bytes.Fields(rest)[0]), 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}

// until waits until the condition holds, asking each 5 ms.
func until(ctx context.Context, what string, limit time.Duration, holds func() bool) error {
	end := time.Now().Add(limit)
	for !holds() {
		if time.Now().After(end) {
			return fmt.Errorf("%s: not within %s", what, limit)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}

// freePort returns a port that was free a moment ago.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// running returns the processes that have the variable and value in their environment.
func running(variable string) []int {
	names, _ := filepath.Glob("/proc/[0-9]*/environ")
	var pids []int
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(text, []byte(variable+"\x00")) {
			continue
		}
		pid, _ := strconv.Atoi(strings.Split(name, "/")[2])
		pids = append(pids, pid)
	}
	return pids
}

// splitPort returns host and port of an address.
func splitPort(address string) (string, int, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	port, err := strconv.Atoi(text)
	return host, port, err
}
