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

// startLimit is how long a function may take to ask for its first event; Lambda
// gives it 10 s.
const startLimit = 10 * time.Second

// start is how one process began.
type start struct {
	took   time.Duration
	memory int64 // resident, in bytes, when it asked for its first event
}

// startOften starts the program several times, one after the other, and tells
// the median of each figure.
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

// startOnce plays the runtime API until the program asks for an event, which it
// never gets.
func startOnce(ctx context.Context, program string, environment []string) (start, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return start{}, fmt.Errorf("cannot listen: %w", err)
	}
	asked, failed := make(chan time.Time, 1), make(chan struct{}, 1)
	server := &http.Server{ReadHeaderTimeout: startLimit, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/invocation/next") {
			asked <- now()
			<-r.Context().Done()
			return
		}
		failed <- struct{}{}
	})}
	go func() { _ = server.Serve(listener) }() // it ends with Close
	defer server.Close()                       //nolint:errcheck // nobody is left to be told

	process := exec.CommandContext(ctx, program)
	process.Env = append(slices.Clone(environment), "AWS_LAMBDA_RUNTIME_API="+listener.Addr().String(), "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=256")
	process.Stdout, process.Stderr = os.Stderr, os.Stderr
	began := now()
	if err := process.Start(); err != nil {
		return start{}, fmt.Errorf("cannot start it: %w", err)
	}
	defer func() {
		cancel()
		_ = process.Wait() // it was killed
	}()
	select {
	case at := <-asked:
		memory, err := resident(process.Process.Pid)
		return start{at.Sub(began), memory}, err
	case <-failed:
		return start{}, errors.New("it told the runtime API that it cannot start")
	case <-ctx.Done():
		return start{}, errors.New("it asked for no event")
	}
}

// resident is the memory that a process has, as Linux tells it.
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
	return 0, errors.New("the process is gone")
}
