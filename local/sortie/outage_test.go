package main

import (
	"fmt"
	"strings"
	"syscall"
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

// TestHungServerIsReported stops the process of the server while commands stream, so that no
// connection breaks. Each says so within the time of client.Probe, and continues after SIGCONT
// without a loss and without a repetition.
func TestHungServerIsReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, url := dev(t, dir, "--addr", "127.0.0.1:0")
	events := start(t, dir, "events", "tail", "--after", "earliest", "--url", url)
	watch := start(t, dir, "runs", "--watch", "--url", url)
	run := start(t, dir, "run", "--url", url, "exec:sh", "--", "-c",
		"i=0; while [ $i -lt 40 ]; do i=$((i+1)); echo line $i; sleep 0.1; done; while [ ! -e "+dir+"/go ]; do sleep 0.1; done; echo last")
	run.stdout.next(t, "line 1")
	id, _, _ := strings.Cut(run.stderr.String(), "\n")
	logs := start(t, dir, "logs", id, "-f", "--url", url)
	logs.stdout.next(t, "line 1")
	watch.stdout.next(t, id)
	server.signal(t, syscall.SIGSTOP)
	hung := time.Now()
	for name, command := range map[string]*sortie{"run": run, "logs": logs, "events": events, "runs": watch} {
		command.stderr.next(t, "cannot reach "+url+": it does not answer")
		t.Logf("%s: after %v", name, time.Since(hung))
	}
	server.signal(t, syscall.SIGCONT)
	for _, command := range []*sortie{run, logs} {
		command.stderr.next(t, "connected again")
	}
	write(t, dir, "go", "")
	var want strings.Builder
	for i := range 40 {
		fmt.Fprintf(&want, "line %d\n", i+1)
	}
	for name, command := range map[string]*sortie{"run": run, "logs": logs} {
		if code := command.exit(t); code != 0 || command.stdout.String() != want.String()+"last\n" {
			t.Errorf("%s: got %d and %s, want each line once", name, code, command.stdout)
		}
	}
	events.stdout.next(t, "job.completed")
	for _, kind := range []string{"job.accepted", "job.started", "job.completed"} {
		if n := strings.Count(events.stdout.String(), kind); n != 1 {
			t.Errorf("got %d events %s, want 1", n, kind)
		}
	}
	watch.stdout.next(t, "Completed")
}
