package stack_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/suite"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/contract"
)

func TestAStoppedStackTriesAgainUncounted(t *testing.T) {
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
		t.Errorf("it ended as %+v", status)
	}
	again.Events(task)
}

func TestAKilledStackGoesOn(t *testing.T) {
	t.Parallel()
	hold, data := suite.Pipe(t), t.TempDir()
	given := served{Data: data, Play: "wait:" + hold + " success"}
	g := spawn(t, given)
	task := g.post(contract.ExportOptions{})
	g.Await(task, func(s contract.Status) bool { return s.State == "Running" })
	queued := g.post(contract.ExportOptions{})
	g.kill(syscall.SIGKILL)
	again := spawn(t, given)
	if again.Addresses.URL != g.Addresses.URL {
		t.Fatalf("it was at %s and is at %s; no worker finds it", g.Addresses.URL, again.Addresses.URL)
	}
	suite.Release(t, hold)
	for _, each := range []string{task, queued} {
		if status := again.End(each); status.Status != contract.StatusSuccess || status.Attempt != 1 {
			t.Errorf("it ended as %+v", status)
		}
		again.Events(each)
	}
}

func TestASecondStackOnTheSameFolderIsRefused(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	start(t, served{Data: data})
	config, err := configure(served{Data: data})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stack.Start(t.Context(), config); err == nil || !strings.Contains(err.Error(), "another sortie") {
		t.Errorf("it says: %v", err)
	}
}
