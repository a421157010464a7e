package stack_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/suite"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/contract"
)

func TestRetryAfterAStopIsNotCounted(t *testing.T) {
	t.Parallel()
	hold, data := suite.Pipe(t), t.TempDir()
	given := served{Data: data, Play: "wait:" + hold + " success", Settings: map[string]string{"SORTIE_MAX_ATTEMPTS": "1"}}
	g := spawn(t, given)
	task := g.post(contract.ExportOptions{})
	g.Await(task, func(s contract.Status) bool { return s.State == "Running" })
	g.kill(syscall.SIGTERM)
	suite.Release(t, hold)
	again := spawn(t, given)
	status := again.End(task)
	if status.Status != contract.StatusSuccess || status.Attempt != 2 {
		t.Errorf("got %+v", status)
	}
	again.Events(task)
}

func TestKilledStackResumes(t *testing.T) {
	t.Parallel()
	hold, data := suite.Pipe(t), t.TempDir()
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
	suite.Release(t, hold)
	for _, each := range []string{task, queued} {
		if status := again.End(each); status.Status != contract.StatusSuccess || status.Attempt != 1 {
			t.Errorf("got %+v", status)
		}
		again.Events(each)
	}
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
