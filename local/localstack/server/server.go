// Package server starts and stops one LocalStack.
//
// A server has a port and a folder. The folder has its state, its log and all
// that it keeps on disk; with Stop it goes, and so does every process that has
// the folder's name in its command line: the server, DynamoDB Local, and the
// functions' bootstraps. Nothing of a server outlives it, and it keeps nothing:
// what was deployed is gone with it.
//
// It runs as a Python program, or as a container (Docker). Start returns when
// it is ready, and is idempotent.
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

	"github.com/sortie-dev/sortie/local/localstack/step"
	"github.com/sortie-dev/sortie/shared/clock"
)

// Server is one, running or not.
type Server struct {
	// Port is on loopback, and serves every AWS API.
	Port int
	// Dir is the server's own folder, an absolute path.
	Dir   string
	Clock clock.Clock
	// Say tells what was done, in a line.
	Say func(format string, args ...any)
}

// Way is how a server is run.
type Way interface {
	// start begins to run it; its log goes to the folder. What it returns with
	// an error is what may have been begun.
	start(ctx context.Context, s Server) (state, error)
}

// state is what the folder says about a server that was started.
type state struct {
	// PID is the server's process; 0 where it is a container.
	PID int `json:"pid,omitempty"`
	// Container is its name, and Docker the program that knows it.
	Container string `json:"container,omitempty"`
	Docker    string `json:"docker,omitempty"`
}

// URL is where it serves.
func (s Server) URL() string { return "http://127.0.0.1:" + strconv.Itoa(s.Port) }

// Log is the file with what it prints.
func (s Server) Log() string { return filepath.Join(s.Dir, "log") }

func (s Server) stateFile() string { return filepath.Join(s.Dir, "server.json") }

// startLimit is ten times what a start takes on two busy cores.
const startLimit = 2 * time.Minute

// Start starts it, unless it runs already, and waits until it is ready.
func (s Server) Start(ctx context.Context, way Way) error {
	if s.Ready(ctx) {
		if _, err := s.state(); err != nil {
			return fmt.Errorf("something else answers on port %d already: stop it, or choose another port with LOCALSTACK_PORT", s.Port)
		}
		s.Say("LocalStack runs already on %s", s.URL())
		return nil
	}
	if err := s.clean(ctx); err != nil {
		return err
	}
	if probe, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port))); err != nil {
		return fmt.Errorf("port %d is taken: stop what has it, or choose another with LOCALSTACK_PORT: %w", s.Port, err)
	} else if err := probe.Close(); err != nil {
		return fmt.Errorf("cannot free port %d: %w", s.Port, err)
	}
	begun := s.Clock.Now()
	if err := os.MkdirAll(s.Dir, 0o750); err != nil {
		return fmt.Errorf("cannot make the server's folder: %w", err)
	}
	if err := s.launch(ctx, way); err != nil {
		// The context may be what has ended: what was begun is cleared all the same.
		return errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
	}
	s.Say("LocalStack is ready on %s after %.1f s", s.URL(), s.Clock.Now().Sub(begun).Seconds())
	return nil
}

// clean ends and removes what a server that was killed has left. A folder in which
// none was begun has what was prepared for this one, and stays.
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

// lookPause is the pause between two looks at whether it is ready, or gone.
const lookPause = 100 * time.Millisecond

// pause waits a moment; false where ctx ends meanwhile.
func (s Server) pause(ctx context.Context) bool {
	return clock.Sleep(ctx, s.Clock, lookPause) == nil
}

// Ready says whether a LocalStack on the port has come up.
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

// Running says whether it was started, and answers.
func (s Server) Running(ctx context.Context) bool {
	_, err := s.state()
	return err == nil && s.Ready(ctx)
}

func (s Server) note(started state) error {
	text, err := json.Marshal(started)
	if err != nil {
		return fmt.Errorf("cannot note the server: %w", err)
	}
	if err := os.WriteFile(s.stateFile(), text, 0o600); err != nil {
		return fmt.Errorf("cannot note the server: %w", err)
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

// Stop stops it and removes its folder. Where none runs, it removes what was
// left; it may be called at any time.
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

// tail is the end of the log.
func (s Server) tail(ctx context.Context, of state) string {
	if of.Container != "" {
		return of.logs(context.WithoutCancel(ctx))
	}
	return step.Tail(s.Log())
}
