// Package server starts and stops a LocalStack.
//
// A server has a port and a folder. The folder contains its state, its log and all other files.
// Stop removes the folder and kills every process with the name of the folder in its command
// line: the server, DynamoDB Local, and the bootstraps of functions. So nothing remains of a
// stopped server and its deployments.
//
// A server runs as a Python program or as a Docker container. Start is idempotent and returns
// when the server is ready.
package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/sortie-dev/sortie/local/proof/localstack/step"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// Server is a server, which may or may not be running.
type Server struct {
	// Port is the loopback port on which the server has every AWS API.
	Port int
	// Dir is the absolute path of the server's own folder.
	Dir   string
	Clock clock.Clock
	// Say prints progress, one line per call.
	Say func(format string, args ...any)
}

// Way is a way to run a server.
type Way interface {
	// start starts the server with its log in the folder. The state is valid even if start
	// returns an error, because a process may have been started.
	start(ctx context.Context, s Server) (state, error)
}

// state is the record of a started server in the folder.
type state struct {
	// PID is the process ID of the server; 0 for a container.
	PID int `json:"pid,omitempty"`
	// Container is the name of the container. Docker is the path of the docker command.
	Container string `json:"container,omitempty"`
	Docker    string `json:"docker,omitempty"`
}

// URL returns the server's address.
func (s Server) URL() string { return "http://127.0.0.1:" + strconv.Itoa(s.Port) }

// Log returns the path of the server's log.
func (s Server) Log() string { return filepath.Join(s.Dir, "log") }

// Trusted returns the path of a file with certificates that functions trust, for example of a
// test's hook receiver. Functions read the file before their first TLS connection.
func (s Server) Trusted() string { return filepath.Join(s.Dir, "trusted.pem") }

func (s Server) stateFile() string { return filepath.Join(s.Dir, "server.json") }

// startLimit is ten times the duration of a start on two busy cores.
const startLimit = 2 * time.Minute

// Start starts the server, unless it is already running, and waits until it is ready.
func (s Server) Start(ctx context.Context, way Way) error {
	if s.Ready(ctx) {
		if _, err := s.state(); err != nil {
			return fmt.Errorf("port %d is used by another program: stop it, or choose another port with LOCALSTACK_PORT", s.Port)
		}
		s.Say("LocalStack already runs on %s", s.URL())
		return nil
	}
	if err := s.clean(ctx); err != nil {
		return err
	}
	if probe, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port))); err != nil {
		return fmt.Errorf("port %d is taken: stop the program that uses it, or choose another port with LOCALSTACK_PORT: %w", s.Port, err)
	} else if err := probe.Close(); err != nil {
		return fmt.Errorf("cannot free port %d: %w", s.Port, err)
	}
	started := s.Clock.Now()
	if err := os.MkdirAll(s.Dir, 0o750); err != nil {
		return fmt.Errorf("cannot create the server's folder: %w", err)
	}
	if err := s.launch(ctx, way); err != nil {
		// Clean up even if the context has ended.
		return errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
	}
	s.Say("LocalStack is ready on %s after %.1f s", s.URL(), s.Clock.Now().Sub(started).Seconds())
	return nil
}

// clean removes the remains of a killed server. It keeps a folder without a recorded server,
// because the folder has the files that were prepared for this server.
func (s Server) clean(ctx context.Context) error {
	for _, trace := range []string{s.stateFile(), s.Log()} {
		if _, err := os.Stat(trace); err == nil {
			return s.Stop(ctx)
		}
	}
	return s.clear(ctx)
}

func (s Server) launch(ctx context.Context, way Way) error {
	started, err := way.start(ctx, s)
	if err := errors.Join(err, s.note(started)); err != nil {
		return err
	}
	limit, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for !s.Ready(limit) {
		if !started.lives(limit) {
			return fmt.Errorf("LocalStack ended while it started; the end of its log:\n%s", s.tail(ctx, started))
		}
		if !s.pause(limit) {
			return fmt.Errorf("LocalStack was not ready within %s; the end of its log:\n%s", startLimit, s.tail(ctx, started))
		}
	}
	return nil
}

// lookPause is the polling interval of Start and Stop.
const lookPause = 100 * time.Millisecond

// pause waits for lookPause. It returns false if ctx ends first.
func (s Server) pause(ctx context.Context) bool {
	return clock.Sleep(ctx, s.Clock, lookPause) == nil
}

// Ready reports whether a LocalStack on the port is ready.
func (s Server) Ready(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+"/_localstack/init/ready", nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer func() { _ = answer.Body.Close() }()
	var stage struct {
		Completed bool `json:"completed"`
	}
	return answer.StatusCode == http.StatusOK && json.NewDecoder(answer.Body).Decode(&stage) == nil && stage.Completed
}

// Running reports whether the server was started and is ready.
func (s Server) Running(ctx context.Context) bool {
	_, err := s.state()
	return err == nil && s.Ready(ctx)
}

func (s Server) note(started state) error {
	text, err := json.Marshal(started)
	if err != nil {
		return fmt.Errorf("cannot record the server: %w", err)
	}
	if err := os.WriteFile(s.stateFile(), text, 0o600); err != nil {
		return fmt.Errorf("cannot record the server: %w", err)
	}
	return nil
}

func (s Server) state() (state, error) {
	var noted state
	text, err := os.ReadFile(s.stateFile())
	if err != nil {
		return noted, err
	}
	return noted, json.Unmarshal(text, &noted)
}

// Stop stops the server and removes its folder. If no server is running, it removes the remains
// of an earlier one. It can be called at any time.
func (s Server) Stop(ctx context.Context) error {
	noted, err := s.state()
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("cannot read the server's state: %w", err)
	case noted.Container != "":
		if err := noted.remove(ctx); err != nil {
			return err
		}
	}
	if err := s.clear(ctx); err != nil {
		return err
	}
	if err := os.RemoveAll(s.Dir); err != nil {
		return fmt.Errorf("cannot remove the server's folder: %w", err)
	}
	return nil
}

// tail returns the end of the log.
func (s Server) tail(ctx context.Context, of state) string {
	if of.Container != "" {
		return of.logs(context.WithoutCancel(ctx))
	}
	return step.Tail(s.Log())
}
