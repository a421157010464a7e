package main

import (
	"strings"
	"testing"
	"time"
)

// TestLostServerIsReported kills the server of commands that wait. Each says so at once, and
// continues with the next server of the folder.
func TestLostServerIsReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, url := dev(t, dir, "--addr", "127.0.0.1:0")
	run := start(t, dir, "run", "--url", url, "exec:sh", "--", "-c", "echo began; while [ ! -e "+dir+"/go ]; do sleep 0.1; done")
	run.stdout.next(t, "began")
	id, _, _ := strings.Cut(run.stderr.String(), "\n")
	waiting := map[string]*sortie{
		"run": run, "status": start(t, dir, "status", id, "--wait", "--url", url), "logs": start(t, dir, "logs", id, "-f", "--url", url),
		"events": start(t, dir, "events", "tail", "--after", "earliest", "--url", url),
	}
	waiting["status"].stderr.next(t, "Running")
	waiting["logs"].stdout.next(t, "began")
	waiting["events"].stdout.next(t, "job.started")
	lost := time.Now()
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for name, command := range waiting {
		command.stderr.next(t, "cannot reach "+url)
		t.Logf("%s: after %v", name, time.Since(lost))
	}
	write(t, dir, "go", "")
	dev(t, dir, "--addr", strings.TrimPrefix(url, "http://"))
	for _, name := range []string{"run", "status", "logs"} {
		if code := waiting[name].exit(t); code != 0 {
			t.Errorf("%s: got %d and %s, want 0 after the next server", name, code, waiting[name].stderr)
		}
	}
	waiting["events"].stdout.next(t, "job.completed")
}
