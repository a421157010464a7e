package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// token is the client token of every server.
const token = "validate-client-token"

// image is the image of a server's runs.
const image = "registry.fly.io/arke-mods-export-worker:latest"

// startLimit limits the time until a server or its workers have started.
const startLimit = time.Minute

// server is a `sortie dev` with its own data folder.
type server struct {
	URL      string `json:"url"`
	dir      string
	args     []string
	settings []string // environment variables, as NAME=VALUE
	command  *exec.Cmd
}

// model returns the name of the server's model; empty if it has no engine.
func (s *server) model() string {
	if slices.Contains(s.args, "--engine") {
		return "mock"
	}
	return ""
}

// start starts a server that runs until close. If worker is not empty, runs start that program.
func (k *kit) start(ctx context.Context, name, worker string, settings ...string) (*server, error) {
	var args []string
	if worker != "" {
		args = []string{"--image", image + "=" + worker}
	}
	return k.startWith(ctx, name, args, settings...)
}

// startWith is like start with command-line arguments.
func (k *kit) startWith(ctx context.Context, name string, args []string, settings ...string) (*server, error) {
	s := &server{dir: filepath.Join(k.work, name), args: args, settings: settings}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create a folder: %w", err)
	}
	k.mu.Lock()
	k.servers = append(k.servers, s)
	k.mu.Unlock()
	return s, k.serve(ctx, s, "127.0.0.1:0")
}

// serve starts a server at an address.
func (k *kit) serve(ctx context.Context, s *server, addr string) error {
	log, err := os.OpenFile(filepath.Join(s.dir, "server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("cannot create a log: %w", err)
	}
	defer func() { _ = log.Close() }() // the server keeps its own descriptor
	s.command = exec.Command(k.sortie(), append([]string{"dev", "--addr", addr, "--data", filepath.Join(s.dir, "data"), "--json"}, s.args...)...)
	s.command.Env, s.command.Stderr = slices.Concat(k.environ, s.settings, []string{"AUTH_TOKEN=" + token}), log
	output, err := s.command.StdoutPipe()
	if err != nil {
		return fmt.Errorf("cannot read the server's output: %w", err)
	}
	if err := s.command.Start(); err != nil {
		return fmt.Errorf("cannot start a server: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = output.Close() })
	line, err := bufio.NewReader(output).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, s)
	}
	if err != nil {
		return fmt.Errorf("got %q from the server, want its addresses: %w", line, err)
	}
	return nil
}

// end stops the server with a signal. Its workers end, too.
func (s *server) end(signal os.Signal) error {
	if s.command.ProcessState != nil {
		return nil
	}
	if err := s.command.Process.Signal(signal); err != nil {
		return fmt.Errorf("cannot stop a server: %w", err)
	}
	_ = s.command.Wait() // an interrupted server returns an error
	return nil
}

// env returns variables with the server's URL and token, for programs.
func (s *server) env() []string { return []string{"SORTIE_URL=" + s.URL, "SORTIE_TOKEN=" + token} }

// client returns the client of the command line.
func (s *server) client() (*client.Client, error) {
	c, err := client.New(client.Config{URL: s.URL, Token: token, Clock: clock.System{}})
	if err != nil {
		return nil, fmt.Errorf("cannot create a client: %w", err)
	}
	return c, nil
}

// post sends a request that the command line's client does not support.
func (s *server) post(ctx context.Context, path string, body []byte, want int, result any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("cannot post to %s: %w", path, err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("cannot post to %s: %w", path, err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != want {
		return fmt.Errorf("post to %s: got %s, want %d", path, answer.Status, want)
	}
	if err := json.NewDecoder(answer.Body).Decode(result); err != nil {
		return fmt.Errorf("post to %s: %w", path, err)
	}
	return nil
}

// attempt has the ids and tokens that a worker gets.
type attempt struct{ taskID, callbackToken, workerToken string }

// idle is a worker that writes its environment to the folder DIR and then waits to be killed.
// It writes the file atomically.
const idle = `#!/bin/sh
env >"DIR/$TASK_ID.part" && mv "DIR/$TASK_ID.part" "DIR/$TASK_ID.env"
exec sleep 7200
`

// idleWorker writes the program idle and returns its path.
func (k *kit) idleWorker() (string, error) {
	name := filepath.Join(k.work, "idle")
	text := strings.ReplaceAll(idle, "DIR", k.work)
	if err := os.WriteFile(name, []byte(text), 0o700); err != nil { //nolint:gosec // a program
		return "", fmt.Errorf("cannot write the idle worker: %w", err)
	}
	return name, nil
}

// submit starts an export whose idle worker has two hours. It returns the ids and tokens of the
// worker.
func (k *kit) submit(ctx context.Context, s *server, pi string) (attempt, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	const policy = `{"timeLimitSeconds":7000,"heartbeatTimeoutSeconds":6000,"heartbeatIntervalSeconds":3000}`
	body := fmt.Sprintf(`{"pi":%q,"policy":%s}`, pi, policy)
	var accepted struct {
		TaskID string `json:"task_id"`
	}
	if err := s.post(ctx, "/export/mods", []byte(body), http.StatusAccepted, &accepted); err != nil {
		return attempt{}, err
	}
	return k.environment(ctx, accepted.TaskID)
}

// environment waits for the file that the task's idle worker writes.
func (k *kit) environment(ctx context.Context, taskID string) (attempt, error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		text, err := os.ReadFile(filepath.Join(k.work, taskID+".env"))
		if err == nil {
			return parse(taskID, string(text))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return attempt{}, fmt.Errorf("cannot start the worker of %s: %w", taskID, ctx.Err())
		}
	}
}

func parse(taskID, environment string) (attempt, error) {
	a := attempt{taskID: taskID}
	for line := range strings.Lines(environment) {
		name, value, _ := strings.Cut(strings.TrimRight(line, "\n"), "=")
		switch name {
		case "CALLBACK_URL":
			_, a.callbackToken, _ = strings.Cut(value, "?token=")
		case "TASK_ENVELOPE":
			var envelope struct{ TaskToken string }
			if err := json.Unmarshal([]byte(value), &envelope); err != nil {
				return attempt{}, fmt.Errorf("cannot read TASK_ENVELOPE: %w", err)
			}
			a.workerToken = envelope.TaskToken
		}
	}
	if a.callbackToken == "" || a.workerToken == "" {
		return attempt{}, fmt.Errorf("worker of %s: missing token in CALLBACK_URL or TASK_ENVELOPE", taskID)
	}
	return a, nil
}
