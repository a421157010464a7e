package roles

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sortie-dev/sortie/local/proof/roles/deployment"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// Failure is a failed invocation, in Lambda's terms.
type Failure struct {
	Type    string `json:"errorType"`
	Message string `json:"errorMessage"`
}

func (f *Failure) Error() string { return f.Type + ": " + f.Message }

// lambda runs functions as processes, each with one invocation at a time. It serves their
// Runtime API; the address for a process has its number.
type lambda struct {
	functions map[string]*function
	// address is the address of the Runtime API.
	address string
	log     io.Writer

	mu        sync.Mutex
	processes map[string]*process
	numbers   int
	closed    bool
	calls     atomic.Int64
}

// function is a deployed function with its idle processes. lambda.mu guards it.
type function struct {
	deployment.Function
	program string
	env     []string
	idle    []*process
}

// process is an execution environment.
type process struct {
	command *exec.Cmd
	next    chan *invocation
	exited  chan struct{}

	mu      sync.Mutex
	current *invocation
}

// invocation is one call of a function.
type invocation struct {
	id       string
	payload  []byte
	deadline time.Time
	// take receives the response while it arrives.
	take  func(kind string, body io.Reader) error
	ended chan error

	mu               sync.Mutex
	begun, abandoned bool
}

// begin reports whether the caller still waits for the response.
func (i *invocation) begin() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.begun = !i.abandoned
	return i.begun
}

// abandon stops the delivery of the response. If it has begun, abandon waits for its end.
func (i *invocation) abandon() {
	i.mu.Lock()
	i.abandoned = true
	begun := i.begun
	i.mu.Unlock()
	if begun {
		<-i.ended //nolint:errcheck // Invoke returns the failure
	}
}

// Invoke calls a function and returns its response. A failed call is a *Failure.
func (l *lambda) Invoke(ctx context.Context, name string, payload []byte) ([]byte, error) {
	var response bytes.Buffer
	err := l.stream(ctx, name, payload, func(_ string, body io.Reader) error {
		_, err := response.ReadFrom(body)
		return err
	})
	return response.Bytes(), err
}

// stream calls a function. It calls take with the content type and the response while it
// arrives.
func (l *lambda) stream(ctx context.Context, name string, payload []byte, take func(kind string, body io.Reader) error) error {
	f := l.functions[name]
	if f == nil {
		return &Failure{"ResourceNotFoundException", "there is no function " + name}
	}
	p, err := l.acquire(f)
	if err != nil {
		return err
	}
	limit := time.Duration(f.Timeout) * time.Second
	i := &invocation{
		id: fmt.Sprintf("00000000-0000-4000-8000-%012d", l.calls.Add(1)), payload: payload, deadline: clock.System{}.Now().Add(limit),
		take: take, ended: make(chan error, 1),
	}
	p.mu.Lock()
	p.current = i
	p.mu.Unlock()
	p.next <- i
	over := time.NewTimer(limit)
	defer over.Stop()
	select {
	case err := <-i.ended:
		l.release(f, p)
		return err
	case <-over.C:
		err = &Failure{"Sandbox.Timedout", name + " timed out"}
	case <-p.exited:
		err = &Failure{"Runtime.ExitError", "the process of " + name + " has ended"}
	case <-ctx.Done():
		err = ctx.Err()
	}
	_ = p.command.Process.Kill()
	i.abandon()
	return err
}

// acquire returns an idle process, or starts a new one.
func (l *lambda) acquire(f *function) (*process, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(f.idle) > 0 {
		p := f.idle[len(f.idle)-1]
		f.idle = f.idle[:len(f.idle)-1]
		select {
		case <-p.exited:
		default:
			return p, nil
		}
	}
	if l.closed {
		return nil, errors.New("the home has ended")
	}
	l.numbers++
	number := strconv.Itoa(l.numbers)
	p := &process{command: exec.Command(f.program), next: make(chan *invocation, 1), exited: make(chan struct{})}
	p.command.Env = append([]string{"AWS_LAMBDA_RUNTIME_API=" + l.address + "/" + number}, f.env...)
	p.command.Stdout, p.command.Stderr = l.log, l.log
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("cannot start a function: %w", err)
	}
	l.processes[number] = p
	go func() {
		_ = p.command.Wait()
		close(p.exited)
	}()
	return p, nil
}

func (l *lambda) release(f *function, p *process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f.idle = append(f.idle, p)
}

// close kills all processes.
func (l *lambda) close() {
	l.mu.Lock()
	l.closed = true
	all := l.processes
	l.mu.Unlock()
	for _, p := range all {
		if err := p.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			continue
		}
		<-p.exited
	}
}

// ServeHTTP serves the Runtime API.
func (l *lambda) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	number, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/2018-06-01/runtime/")
	l.mu.Lock()
	p := l.processes[number]
	l.mu.Unlock()
	switch {
	case p == nil:
		http.NotFound(w, r)
	case path == "invocation/next":
		select {
		case i := <-p.next:
			w.Header().Set("Lambda-Runtime-Aws-Request-Id", i.id)
			w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(i.deadline.UnixMilli(), 10))
			_, _ = w.Write(i.payload)
		case <-r.Context().Done():
		}
	case path == "init/error":
		_, _ = io.Copy(l.log, r.Body)
		w.WriteHeader(http.StatusAccepted)
	default:
		p.finish(path, r)
		w.WriteHeader(http.StatusAccepted)
	}
}

// finish ends the current invocation with its response or its error.
func (p *process) finish(path string, r *http.Request) {
	p.mu.Lock()
	i := p.current
	p.mu.Unlock()
	if !i.begin() {
		return
	}
	switch path {
	case "invocation/" + i.id + "/response":
		err := i.take(r.Header.Get("Content-Type"), r.Body)
		_, _ = io.Copy(io.Discard, r.Body)
		if failed := r.Trailer.Get("Lambda-Runtime-Function-Error-Type"); err == nil && failed != "" {
			err = &Failure{failed, "the stream broke"}
		}
		i.ended <- err
	case "invocation/" + i.id + "/error":
		failure := &Failure{Type: "Unknown"}
		if err := json.NewDecoder(r.Body).Decode(failure); err != nil {
			failure.Message = err.Error()
		}
		i.ended <- failure
	}
}
