package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/sdk/go/api"
	"github.com/sortie-dev/sortie/shared/sdk/go/client"
)

// sdk returns a Go client of the server of dir, with its owner's token, and a context for calls.
func sdk(t *testing.T, dir, url string) (context.Context, *client.Client) {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(dir, ".sortie", "token"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Config{URL: url, Token: strings.TrimSpace(string(token))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	t.Cleanup(cancel)
	return ctx, c
}

func shell(script string) *api.RunDefinition {
	return &api.RunDefinition{Image: "exec:/bin/sh", Command: []string{"-c", script}}
}

// created creates a run of a shell script.
func created(ctx context.Context, t *testing.T, c *client.Client, script string) *api.RunAccepted {
	t.Helper()
	run, err := c.Runs.Create(ctx, shell(script))
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func ended(ctx context.Context, t *testing.T, c *client.Client, runID string) *api.Task {
	t.Helper()
	run, err := c.Runs.Wait(ctx, runID)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestGoClientSubmitsFollowsAndFetches(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, url := dev(t, dir, "--addr", "127.0.0.1:0")
	ctx, c := sdk(t, dir, url)
	definition := shell(`cat; echo one; sleep 1; echo two; printf 'a,b' > report.csv`)
	definition.Output = &api.JobFieldsOutput{Path: "report.csv"}
	definition.Input = base64.StdEncoding.EncodeToString([]byte("zero\n"))
	run, err := c.Runs.Create(ctx, definition)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for line, err := range c.Tasks.FollowLogs(ctx, run.TaskID, client.LogQuery{Stream: "stdout"}) {
		if err != nil {
			t.Fatal(err)
		}
		text.Write(line.Data)
	}
	if got := ended(ctx, t, c, run.RunID); got.State != api.StateCompleted || text.String() != "zero\none\ntwo\n" {
		t.Errorf("got %s with log %q, want Completed with three lines", got.State, text.String())
	}
	var output bytes.Buffer
	size, err := c.Tasks.Download(ctx, run.TaskID, &output)
	described, failed := c.Tasks.DescribeOutput(ctx, run.TaskID)
	if err != nil || failed != nil || output.String() != "a,b" || described.Size != size || described.FileName != "report.csv" {
		t.Errorf("got output %q (%v), description %+v (%v), want a,b", output.String(), err, described, failed)
	}
	if log, err := c.Tasks.Logs(ctx, run.TaskID, client.LogQuery{}); err != nil || !strings.Contains(log, "two\n") {
		t.Errorf("got log %q (%v), want two lines", log, err)
	}
	for task, err := range c.Runs.List(client.RunsListQuery{Limit: 1}).All(ctx) {
		if err != nil || task.TaskID != run.TaskID {
			t.Errorf("got %v (%v), want the run", task, err)
		}
	}
	if explanation, err := c.Runs.Explain(ctx, run.RunID); err != nil || explanation.Message == "" {
		t.Errorf("got %v (%v), want an explanation", explanation, err)
	}
}

func TestGoClientCancels(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, url := dev(t, dir, "--addr", "127.0.0.1:0")
	ctx, c := sdk(t, dir, url)
	run := created(ctx, t, c, "echo began; exec sleep 600")
	for _, err := range c.Tasks.FollowLogs(ctx, run.TaskID, client.LogQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	answer, err := c.Runs.Cancel(ctx, run.RunID, &api.CancelRequest{Reason: "a test"})
	if err != nil || answer.Result != "requested" {
		t.Errorf("got %v (%v), want it requested", answer, err)
	}
	if got := ended(ctx, t, c, run.RunID); got.State != api.StateCancelled {
		t.Errorf("got %s, want Cancelled", got.State)
	}
}

func TestGoClientManagesJobs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, url := dev(t, dir, "--addr", "127.0.0.1:0")
	ctx, c := sdk(t, dir, url)
	var header http.Header
	definition := &api.JobDefinition{ID: "go-sdk", Image: "exec:/bin/echo", Command: []string{"hello"}}
	if _, err := c.Jobs.Put(ctx, "go-sdk", definition, client.JobsPutQuery{}, client.WithCreateOnly(), client.WithResponseHeader(&header)); err != nil {
		t.Fatal(err)
	}
	first := header.Get("ETag")
	job, err := c.Jobs.Patch(ctx, "go-sdk", map[string]any{"name": "of a test"}, client.WithIfMatch(first))
	if err != nil || job.Name != "of a test" {
		t.Errorf("got %v (%v), want the name", job, err)
	}
	if err := c.Jobs.Delete(ctx, "go-sdk", client.WithIfMatch(first)); !errors.Is(err, client.ErrPreconditionFailed) {
		t.Errorf("got %v, want a failed precondition", err)
	}
	run, err := c.Jobs.Run(ctx, "go-sdk", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := ended(ctx, t, c, run.RunID); got.State != api.StateCompleted {
		t.Errorf("got %s, want Completed", got.State)
	}
	var refused *client.Error
	if _, err := c.Runs.Get(ctx, "job_01K9XVBAQZF9EHDRXGBEADTZYY"); !errors.Is(err, client.ErrNotFound) || !errors.As(err, &refused) || refused.Code == "" || refused.CorrelationID == "" {
		t.Errorf("got %v, want a 404 with code and correlation id", err)
	}
	if _, err := c.Runs.Create(ctx, &api.RunDefinition{}); !errors.Is(err, client.ErrInvalid) {
		t.Errorf("got %v, want an invalid request", err)
	}
	stored, err := c.Artifacts.CreateBytes(ctx, []byte{0, 1}, client.Upload{Kind: "image", MediaType: "image/png", Metadata: map[string]any{"n": 1}})
	if err != nil {
		t.Fatal(err)
	}
	content, err := c.Artifacts.Open(ctx, stored.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = content.Close() }()
	if content.MediaType != "image/png" || content.Size != 2 {
		t.Errorf("got %+v, want two bytes of image/png", content.Content)
	}
	if metrics, err := c.Server.Metrics(ctx); err != nil || !strings.Contains(metrics, "# HELP") {
		t.Errorf("got metrics of %d bytes (%v)", len(metrics), err)
	}
}

func TestGoClientVerifiesWebhooks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := startWith(t, dir, []string{"SORTIE_HOOK_ALLOW=127.0.0.1"}, "dev", "--json", "--addr", "127.0.0.1:0")
	var at struct{ URL string }
	if err := json.Unmarshal([]byte(server.stdout.next(t, "{")), &at); err != nil {
		t.Fatal(err)
	}
	ctx, c := sdk(t, dir, at.URL)
	received := make(chan string, 10)
	var verifier client.Verifier
	ready := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-ready
		event, err := verifier.Read(r)
		if err != nil {
			t.Errorf("got %v, want a verified event", err)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		received <- event.EventType
	}))
	t.Cleanup(receiver.Close)
	webhook, err := c.Webhooks.Create(ctx, &api.WebhookSettings{URL: receiver.URL, EventTypes: []string{"job.completed"}})
	if err != nil {
		t.Fatal(err)
	}
	verifier.Secrets = []string{webhook.Secret}
	close(ready)
	if _, err := c.Webhooks.Test(ctx, webhook.ID); err != nil {
		t.Error(err)
	}
	created(ctx, t, c, "true")
	for _, want := range []string{"webhook.test", "job.completed"} {
		select {
		case got := <-received:
			if got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		case <-ctx.Done():
			t.Fatalf("got no %s", want)
		}
	}
}

// TestGoClientResumesEventsOverAKill kills the server while the client follows its events. The
// client must get each event once and in order.
func TestGoClientResumesEventsOverAKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, url := dev(t, dir, "--addr", "127.0.0.1:0")
	ctx, c := sdk(t, dir, url)
	types := []string{"job.accepted", "job.completed"}
	stream := c.Events.Stream(client.EventStreamQuery{After: "earliest", Types: types})
	created(ctx, t, c, "true")
	var got []string
	completed := 0
	for event, err := range stream.All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, event.EventID)
		if event.EventType != "job.completed" {
			continue
		}
		completed++
		if completed == 1 {
			created(ctx, t, c, "sleep 1")
			server.signal(t, syscall.SIGKILL)
			_ = server.exit(t)
			dev(t, dir, "--addr", strings.TrimPrefix(url, "http://"))
			created(ctx, t, c, "true")
		}
		if completed == 3 {
			break
		}
	}
	var want []string
	for event, err := range c.Events.List(client.EventsListQuery{After: "earliest", Types: types}).All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, event.EventID)
	}
	if completed != 3 || len(want) < len(got) || !slices.Equal(got, want[:len(got)]) {
		t.Errorf("got %v, want %v", got, want)
	}
}
