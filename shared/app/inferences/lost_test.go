package inferences_test

import (
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// TestReaderOfALostEndGetsTheNewOne: a reader may have records that a crash of the host has
// lost. It gets the records that are appended after the crash.
func TestReaderOfALostEndGetsTheNewOne(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 1)
	ahead := inference.EventID{Position: 1000, N: 1}
	task := h.ask(3)
	h.ended(task)
	if got := names(h.read(task, ahead)); got != "e" {
		t.Errorf("got the events %q of a stream that has ended, want the last one", got)
	}
	h.engines["r1"].FailNext(mockengine.FailStall, 1)
	task = h.ask(3)
	begun, got := make(chan struct{}), make(chan string)
	go func() {
		var events []inference.Event
		err := h.tasks.Follow(t.Context(), client, task, ahead, func(run.Run) error { close(begun); return nil }, func(found []inference.Event) error {
			events = append(events, found...)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		got <- names(events)
	}()
	<-begun
	if _, err := h.tasks.Cancel(t.Context(), client, task, ""); err != nil {
		t.Fatal(err)
	}
	if got := <-got; got == "" || got[len(got)-1:] != "e" {
		t.Errorf("got the events %q of a stream that ends, want those behind its newest record", got)
	}
}
