package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// startLimit is Lambda's limit for the start of a function.
const startLimit = 10 * time.Second

// start is the measurement of one start.
type start struct {
	took   time.Duration
	memory int64 // resident bytes at the first request for an event
}

// startOften starts the program several times in sequence. It returns the median of the time
// and of the memory.
func startOften(ctx context.Context, program string, environment []string) (start, error) {
	var times []time.Duration
	var memories []int64
	for range starts {
		one, err := startOnce(ctx, program, environment)
		if err != nil {
			return start{}, err
		}
		times, memories = append(times, one.took), append(memories, one.memory)
	}
	slices.Sort(times)
	slices.Sort(memories)
	return start{times[starts/2], memories[starts/2]}, nil
}

// startOnce starts the program and serves the Runtime API until the program requests an event.
// The program gets no event.
func startOnce(ctx context.Context, program string, environment []string) (start, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return start{}, fmt.Errorf("cannot listen: %w", err)
	}
	requested, failed := make(chan time.Time, 1), make(chan struct{}, 1)
	server := &http.Server{ReadHeaderTimeout: startLimit, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/invocation/next") {
			requested <- now()
			<-r.Context().Done()
			return
		}
		failed <- struct{}{}
	})}
	go func() { _ = server.Serve(listener) }() // it returns after Close
	defer server.Close()                       //nolint:errcheck // the measurement is complete

	process := exec.CommandContext(ctx, program)
	process.Env = append(slices.Clone(environment), "AWS_LAMBDA_RUNTIME_API="+listener.Addr().String(), "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=256")
	process.Stdout, process.Stderr = os.Stderr, os.Stderr
	started := now()
	if err := process.Start(); err != nil {
		return start{}, fmt.Errorf("cannot start the program: %w", err)
	}
	defer func() {
		cancel()
		_ = process.Wait() // the process was killed
	}()
	select {
	case at := <-requested:
		memory, err := resident(process.Process.Pid)
		return start{at.Sub(started), memory}, err
	case <-failed:
		return start{}, errors.New("the program reported an initialization error")
	case <-ctx.Done():
		return start{}, errors.New("the program requested no event in 10 s")
	}
}

// resident returns the resident memory of a process in bytes. It requires Linux.
func resident(pid int) (int64, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, fmt.Errorf("cannot read the memory of a process (this needs Linux): %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, "VmRSS:"); found {
			kilobytes, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			if err != nil {
				return 0, fmt.Errorf("cannot read the memory of a process: %w", err)
			}
			return kilobytes << 10, nil
		}
	}
	return 0, errors.New("the process has ended")
}
