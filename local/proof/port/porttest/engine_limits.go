package porttest

import (
	"runtime"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// engineLimits makes the engine stall before the first piece and within an answer. In each case
// exactly one limit, of a minute, can end the request.
func engineLimits(t *testing.T, h EngineHarness) {
	if h.Fault == nil {
		return
	}
	for _, row := range []struct {
		pieces int
		limits port.GenerationLimits
	}{
		{0, port.GenerationLimits{First: time.Minute}},
		{0, port.GenerationLimits{First: time.Minute, Gap: time.Hour, Total: time.Hour}},
		{0, port.GenerationLimits{First: time.Hour, Gap: 20 * time.Second, Total: time.Minute}},
		{3, port.GenerationLimits{Gap: time.Minute}},
		{3, port.GenerationLimits{First: time.Second, Total: time.Minute}},
		{3, port.GenerationLimits{First: time.Hour, Gap: time.Minute, Total: time.Hour}},
	} {
		h.Fault(t, EngineStalls, row.pieces)
		g := h.generation()
		g.Limits = row.limits
		pieces := make(chan struct{}, g.MaxTokens)
		done := make(chan error, 1)
		go func() {
			_, err := h.Engine.Generate(deadline(t), g, func(port.Piece) error {
				pieces <- struct{}{}
				return nil
			})
			done <- err
		}()
		h.Begun(t)
		if row.pieces > 0 {
			select {
			case <-pieces:
			case err := <-done:
				t.Fatalf("got %v before the first piece", err)
			}
		}
		h.untilLimit(t, done, row.limits)
		if row.pieces == 0 && len(pieces) > 0 {
			t.Errorf("limits %+v: got %d pieces of an engine that sends none", row.limits, len(pieces))
		}
		h.Idle(t)
	}
}

// untilLimit moves the clock from timer to timer until the request ends, which must be a minute
// after its start or after a piece. Timers of the longer limits stay ahead.
func (h EngineHarness) untilLimit(t *testing.T, done <-chan error, limits port.GenerationLimits) {
	t.Helper()
	const most = 5 * time.Minute // each piece may be late
	began := h.Clock.Now()
	for over := deadline(t); over.Err() == nil; runtime.Gosched() {
		select {
		case err := <-done:
			if passed := h.Clock.Now().Sub(began); !fault.Is(err, fault.DecodeTimeout) || passed < time.Minute || passed > most {
				t.Errorf("limits %+v: got %v after %s, want DecodeTimeout after one to %s", limits, err, passed, most)
			}
			return
		default:
			if next, waits := h.Clock.Next(); waits && next.Sub(began) <= most {
				h.Clock.Advance(next.Sub(h.Clock.Now()))
			}
		}
	}
	t.Fatalf("limits %+v: the request does not end", limits)
}
