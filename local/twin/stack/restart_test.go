package stack_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/suite/scripts"

	"github.com/sortie-dev/sortie/local/proof/await"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func TestRetryAfterAStopIsNotCounted(t *testing.T) {
	t.Parallel()
	hold, data := scripts.Pipe(t), t.TempDir()
	given := served{Data: data, Play: "wait:" + hold + " success", Settings: map[string]string{"SORTIE_MAX_ATTEMPTS": "1"}}
	g := spawn(t, given)
	task := g.post(contract.ExportOptions{})
	g.Await(task, func(s contract.Status) bool { return s.State == "Running" })
	g.kill(syscall.SIGTERM)
	scripts.Release(t, hold)
	again := spawn(t, given)
	status := again.End(task)
	if status.Status != contract.StatusSuccess || status.Attempt != 2 {
		t.Errorf("got %+v", status)
	}
	again.Events(task)
}

func TestKilledStackResumes(t *testing.T) {
	t.Parallel()
	hold, data := scripts.Pipe(t), t.TempDir()
	given := served{Data: data, Play: "wait:" + hold + " success", Settings: map[string]string{"SORTIE_MAX_MACHINES": "1"}}
	g := spawn(t, given)
	task := g.post(contract.ExportOptions{})
	g.Await(task, func(s contract.Status) bool { return s.State == "Running" })
	queued := g.post(contract.ExportOptions{})
	g.Await(queued, func(s contract.Status) bool { return s.QueuePosition != nil })
	g.kill(syscall.SIGKILL)
	again := spawn(t, given)
	if again.Addresses.URL != g.Addresses.URL {
		t.Fatalf("got the address %s, want %s as before", again.Addresses.URL, g.Addresses.URL)
	}
	scripts.Release(t, hold)
	for _, each := range []string{task, queued} {
		if status := again.End(each); status.Status != contract.StatusSuccess || status.Attempt != 1 {
			t.Errorf("got %+v", status)
		}
		again.Events(each)
	}
}

// TestProgramEndsWithoutAServer ends a wrapped program while no server runs. Its wrapper ends
// with it, and the next server reads the exit. A wrapper with an output file waits for that
// server, or gives up before.
func TestProgramEndsWithoutAServer(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		output string
		within time.Duration
		ends   bool // the wrapper ends without a server
		state  string
	}{
		"without an output": {"", 0, true, contract.StatusSuccess},
		"with an output":    {`"output": {"path": "report"},`, 0, false, contract.StatusSuccess},
		"given up":          {`"output": {"path": "report"},`, time.Millisecond, true, contract.StatusError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given, files := served{Data: t.TempDir(), ReportWithin: row.within}, t.TempDir()
			begun, ready, ended := filepath.Join(files, "begun"), filepath.Join(files, "ready"), filepath.Join(files, "ended")
			exists := func(name string) func() bool {
				return func() bool { _, err := os.Stat(name); return err == nil }
			}
			g := spawn(t, given)
			token, err := os.ReadFile(filepath.Join(given.Data, "token"))
			if err != nil {
				t.Fatal(err)
			}
			g.Token = strings.TrimSpace(string(token))
			answer := g.Call(http.MethodPost, "/v1/runs", fmt.Sprintf(`{"image": "exec:/bin/sh", "retryConfig": {"maxRetries": 0}, %s
				"command": ["-c", "echo first; echo >%s; while [ ! -e %s ]; do sleep 0.05; done; echo >report; echo last; echo >%s"]}`, row.output, begun, ready, ended))
			if answer.Status != http.StatusAccepted {
				t.Fatalf("got %d %s, want 202", answer.Status, answer.Body)
			}
			task := outside.Decode[contract.RunAccepted](t, answer.Body).TaskID
			// The machine counts as running before its wrapper has reported. Only then does the
			// program begin.
			await.Until(t, "beginning of the program", exists(begun))
			g.kill(syscall.SIGKILL)
			if err := os.WriteFile(ready, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			await.Until(t, "end of the program", exists(ended))
			if row.ends {
				await.Until(t, "end of the wrapper", func() bool { return len(wrappersOf(t, given.Data)) == 0 })
			}
			again := spawn(t, given)
			again.Token = g.Token
			if status := again.End(task); status.Status != row.state || status.Attempt != 1 {
				t.Errorf("got %+v, want %s in attempt 1", status, row.state)
			}
			again.Events(task)
			if log := again.Call(http.MethodGet, "/v1/tasks/"+task+"/logs", ""); string(log.Body) != "first\nlast\n" {
				t.Errorf("got the log %q, want all of it", log.Body)
			}
		})
	}
}

// wrappersOf returns the processes whose current folder is inside a data folder.
func wrappersOf(t *testing.T, data string) []string {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(names, func(name string) bool {
		folder, err := os.Readlink(name)
		return err != nil || !strings.HasPrefix(folder, data+"/")
	})
}

func TestSecondStackOnAFolderIsRefused(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	start(t, served{Data: data})
	config, err := configure(served{Data: data})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stack.Start(t.Context(), config); err == nil || !strings.Contains(err.Error(), "another sortie") {
		t.Errorf("got error %v, want another sortie", err)
	}
}
