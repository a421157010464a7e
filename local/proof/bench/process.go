package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sortie-dev/sortie/local/twin/stack"
)

// child is this program as a measured part.
type child struct {
	command *exec.Cmd
	output  *bufio.Reader
}

// startPart starts this program as the part. The caller ends it.
func startPart(part string, args ...string) (*child, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{command: exec.Command(executable, append([]string{part}, args...)...)}
	c.command.Stderr = os.Stderr
	pipe, err := c.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.output = bufio.NewReader(pipe)
	return c, c.command.Start()
}

// line reads one line of the part's output, such as the one that it prints when it is ready.
func (c *child) line() (string, error) {
	text, err := c.output.ReadString('\n')
	return strings.TrimSpace(text), err
}

func (c *child) end() error {
	if err := c.command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	err := c.command.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == -1 {
		return nil // a part that does not handle the signal
	}
	return err
}

// startStack starts a stack in its own process and returns its addresses.
func startStack(options ...string) (*child, stack.Addresses, error) {
	var addresses stack.Addresses
	c, err := startPart("serve", options...)
	if err != nil {
		return nil, addresses, err
	}
	text, err := c.line()
	if err == nil {
		err = json.Unmarshal([]byte(text), &addresses)
	}
	return c, addresses, err
}

// usage is the memory and the CPU time of a process.
type usage struct {
	resident, peak int64 // bytes
	cpu            time.Duration
}

var errNoProc = errors.New("cannot measure the process: this system has no /proc")

// usageOf reads the usage of a process from /proc.
func usageOf(pid int) (usage, error) {
	folder := filepath.Join("/proc", strconv.Itoa(pid))
	status, err := os.ReadFile(filepath.Join(folder, "status"))
	if err != nil {
		return usage{}, errNoProc
	}
	stat, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil {
		return usage{}, errNoProc
	}
	u := usage{resident: kilobytes(status, "VmRSS:"), peak: kilobytes(status, "VmHWM:")}
	_, after, _ := bytes.Cut(stat, []byte(") "))
	fields := strings.Fields(string(after))
	if len(fields) < 13 {
		return usage{}, fmt.Errorf("cannot read the times of process %d", pid)
	}
	for _, ticks := range fields[11:13] {
		n, err := strconv.ParseInt(ticks, 10, 64)
		if err != nil {
			return usage{}, err
		}
		u.cpu += time.Duration(n) * time.Second / 100
	}
	return u, nil
}

// collected returns the usage after a garbage collection that returns free memory to the
// operating system.
func (c *child) collected() (usage, error) {
	if err := c.command.Process.Signal(syscall.SIGUSR1); err != nil {
		return usage{}, err
	}
	if _, err := c.line(); err != nil {
		return usage{}, err
	}
	return usageOf(c.command.Process.Pid)
}

// resetPeak resets the process's peak memory to its current memory.
func resetPeak(pid int) error {
	return os.WriteFile(filepath.Join("/proc", strconv.Itoa(pid), "clear_refs"), []byte("5"), 0o200) //nolint:gosec // /proc
}

func kilobytes(status []byte, key string) int64 {
	_, after, _ := bytes.Cut(status, []byte(key))
	fields := strings.Fields(string(after[:min(len(after), 40)]))
	if len(fields) == 0 {
		return 0
	}
	n, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}
