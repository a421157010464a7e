package servers

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/sortie-dev/sortie/local/proof/engines/tinymodel"
	"github.com/sortie-dev/sortie/local/proof/localstack/step"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// Options configures the start of a server.
type Options struct {
	// Folder is an existing folder for the files of the model.
	Folder string
	// Shape is the size of the model; the zero value is tinymodel.Tiny.
	Shape tinymodel.Shape
	// Slots is the number of requests that the server generates concurrently; 0 means 2.
	Slots int
	// Port is the loopback port; 0 means a free one.
	Port int
	// Exact makes llama-server compute with 32 bits only. By default it stores keys and values
	// in 16 bits, which changes a log-probability by about 0.01. vLLM always uses 32 bits.
	Exact bool
	// Calls makes llama-server and vLLM read calls of tools and reasoning from the text of the
	// model. See CallTokens.
	Calls bool
}

// Server is a running inference server. It is safe for concurrent use.
type Server struct {
	URL, MetricsURL string
	// Model is the server's name of its model.
	Model string
	// Port is the port of URL.
	Port int

	command *exec.Cmd
	// ready is the path that answers 200 when the server accepts requests.
	ready string
	log   *record
	ended chan struct{}
}

// The limits of a start: the timeout, and the interval between checks.
const (
	startWithin = 10 * time.Minute
	askEvery    = 20 * time.Millisecond
)

// contextTokens limits the text of a request, in tokens.
const contextTokens = 2048

// Start starts a server and returns when it accepts requests. The caller kills it. It also ends
// with this process.
func (e *Engine) Start(ctx context.Context, o Options) (*Server, error) {
	if o.Shape == (tinymodel.Shape{}) {
		o.Shape = tinymodel.Tiny
	}
	if o.Slots == 0 {
		o.Slots = 2
	}
	if o.Port == 0 {
		free, err := step.FreePort(ctx)
		if err != nil {
			return nil, err
		}
		o.Port = free
	}
	s := &Server{URL: "http://127.0.0.1:" + strconv.Itoa(o.Port), Model: "tiny", Port: o.Port, log: &record{}, ended: make(chan struct{})}
	var err error
	switch e.kind {
	case platform.EngineLlamaCpp:
		s.ready = "/health"
		s.command, err = e.llamacpp(o, s)
	case platform.EngineTriton:
		s.ready = "/v2/health/ready"
		s.command, err = e.triton(ctx, o, s)
	case platform.EngineVLLM:
		s.ready = "/health"
		s.command, err = e.vllm(o, s)
	default:
		err = fmt.Errorf("no inference server %q", e.kind)
	}
	if err != nil {
		return nil, err
	}
	s.command.Dir = o.Folder
	if err := s.start(ctx); err != nil {
		return nil, fmt.Errorf("the engine %s does not start: %w:\n%s", e.kind, err, s.Log())
	}
	return s, nil
}

// Restart kills the server and starts it again at the same address with the same files. The
// caller must not use it meanwhile.
func (s *Server) Restart(ctx context.Context) error {
	s.Kill()
	last := s.command
	s.command = exec.Command(last.Path, last.Args[1:]...) //nolint:gosec // G204: its own installation
	s.command.Env, s.command.Dir, s.ended = last.Env, last.Dir, make(chan struct{})
	if err := s.start(ctx); err != nil {
		return fmt.Errorf("the server does not start again: %w:\n%s", err, s.Log())
	}
	return nil
}

// start starts the program and returns when the server accepts requests.
func (s *Server) start(ctx context.Context) error {
	s.command.Stdout, s.command.Stderr, s.command.SysProcAttr = s.log, s.log, attributes()
	if _, err := s.command.StdinPipe(); err != nil { // it ends with this process
		return err
	}
	if err := s.command.Start(); err != nil {
		return err
	}
	command, ended := s.command, s.ended
	go func() {
		_ = command.Wait() // killed, so an error is expected
		close(ended)
	}()
	err := s.await(ctx, s.URL+s.ready)
	if err == nil && s.MetricsURL != "" { // another listener, which starts later
		err = s.await(ctx, s.MetricsURL+"/metrics")
	}
	if err != nil {
		s.Kill()
	}
	return err
}

// llamacpp returns the command of a llama-server. It uses one thread, which does not spin while
// it waits.
func (e *Engine) llamacpp(o Options, s *Server) (*exec.Cmd, error) {
	file := filepath.Join(o.Folder, "model.gguf")
	if err := tinymodel.New(o.Shape, modelSeed).WriteGGUF(file); err != nil {
		return nil, err
	}
	args := []string{
		"--model", file, "--alias", s.Model, "--host", "127.0.0.1", "--port", strconv.Itoa(o.Port), "--offline", "--no-ui",
		"--threads", "1", "--threads-batch", "1", "--threads-http", strconv.Itoa(o.Slots + 8), "--poll", "0", "--cache-ram", "0",
		"--parallel", strconv.Itoa(o.Slots), "--ctx-size", strconv.Itoa(o.Slots * contextTokens), "--metrics", "--slots", "--props",
	}
	if o.Exact {
		args = append(args, "--cache-type-k", "f32", "--cache-type-v", "f32", "--flash-attn", "off")
	}
	if o.Calls {
		args = append(args, "--jinja", "--chat-template", callTemplate)
	}
	return exec.Command(filepath.Join(e.folder, "llama-server"), args...), nil //nolint:gosec // G204: its own installation
}

// modelSeed is the seed of the models of all servers.
const modelSeed = 1

// await waits until the server answers 200 at url.
func (s *Server) await(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return fmt.Errorf("cannot ask it: %w", err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err == nil {
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-s.ended:
			return fmt.Errorf("it has ended: %v", s.command.ProcessState)
		default:
		}
		if clock.Sleep(ctx, clock.System{}, askEvery) != nil {
			return context.Cause(ctx)
		}
	}
}

// Kill kills the server with SIGKILL and waits for its end. It is idempotent.
func (s *Server) Kill() {
	s.Signal(syscall.SIGCONT) // a stopped process must run to end
	s.Signal(syscall.SIGKILL)
	<-s.ended
}

// Signal sends a signal to the server and its processes.
func (s *Server) Signal(signal syscall.Signal) {
	_ = syscall.Kill(-s.command.Process.Pid, signal) // an error if it has ended
}

// Terminate sends SIGTERM to the server's first process only, as an operator does.
func (s *Server) Terminate() { _ = s.command.Process.Signal(syscall.SIGTERM) }

// Log returns the output of the server.
func (s *Server) Log() string { return s.log.String() }

// record is the output of a program. It is safe for concurrent use.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

// String returns the output so far.
func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(slices.Clone(r.text.Bytes()))
}
