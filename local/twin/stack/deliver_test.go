package stack

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestFailedDeliveryIsRepeated checks that a webhook stays queued until its call succeeds.
func TestFailedDeliveryIsRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		d, began, calls := newDeliverer(clock.System{}, slog.New(slog.DiscardHandler)), time.Now(), []time.Duration(nil)
		deliver := func(context.Context, webhook.Ref) error {
			calls = append(calls, time.Since(began))
			if len(calls) < 4 {
				return errors.New("the store is locked")
			}
			return nil
		}
		ended := make(chan struct{})
		go func() { defer close(ended); d.run(ctx, deliver) }()
		synctest.Wait()
		if err := d.Wake(ctx, port.Wake{Tenant: "default", Webhook: "w"}); err != nil {
			t.Error(err)
		}
		if err := clock.Sleep(ctx, clock.System{}, time.Minute); err != nil {
			t.Error(err)
		}
		cancel()
		<-ended
		if want := []time.Duration{0, 100 * time.Millisecond, 300 * time.Millisecond, 700 * time.Millisecond}; !slices.Equal(calls, want) {
			t.Errorf("got calls at %v, want %v", calls, want)
		}
		if len(d.turns) > 0 {
			t.Errorf("got %d webhooks queued, want none", len(d.turns))
		}
	})
}
