package stack

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/run"
)

// TestRelayGathersTheEventsOfTasks: the relay waits only for a moment after the commit of an
// inference task.
func TestRelayGathersTheEventsOfTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &taskPace{clock: clock.System{}}
		waits := waitsOf(t, p.wait)
		waits(0)
		p.Committed(t.Context(), run.Run{Work: run.Work{Kind: run.KindJob}}, nil)
		waits(0)
		p.Committed(t.Context(), run.Run{Work: run.Work{Kind: run.KindInference, Inference: &run.Inference{}}}, nil)
		waits(taskPause)
		waits(taskPause)
		over, _ := p.clock.NewTimer(taskRecent)
		<-over
		waits(0)
	})
}

// TestBusyRelayGathersEvents: an event is relayed at once after a pause, and with others after
// another event.
func TestBusyRelayGathersEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &relayPace{clock: clock.System{}}
		waits := waitsOf(t, p.wait)
		waits(0)
		p.relayed(0)
		waits(0)
		p.relayed(1)
		waits(gatherPause)
		p.relayed(7)
		waits(gatherPause)
		over, _ := p.clock.NewTimer(gatherRecent)
		<-over
		waits(0)
	})
}

// waitsOf returns a function that checks how long the next wait takes.
func waitsOf(t *testing.T, wait func(context.Context)) func(want time.Duration) {
	t.Helper()
	return func(want time.Duration) {
		t.Helper()
		began := time.Now()
		wait(t.Context())
		if got := time.Since(began); got != want {
			t.Errorf("got a wait of %s, want %s", got, want)
		}
	}
}
