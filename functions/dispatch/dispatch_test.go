package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/functions/dispatch"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
)

var now = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func TestShiftEndsBeforeItsInvocation(t *testing.T) {
	t.Parallel()
	const life = 899 * time.Second // of the function
	ctx, cancel := context.WithDeadline(t.Context(), now.Add(life))
	defer cancel()
	for name, ctx := range map[string]context.Context{"with a deadline": ctx, "without": t.Context()} {
		var got inferences.DispatchCall
		var left time.Duration
		handle := dispatch.Handler(func(_ context.Context, call inferences.DispatchCall, end time.Time) error {
			got, left = call, end.Sub(now)
			return nil
		}, func() time.Time { return now })
		want := inferences.DispatchCall{Tenant: "acme", Pool: "pool0", Run: "inf_1"}
		event, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := handle(ctx, event); err != nil || got != want || left < dispatch.MostWithin || left > life-10*time.Second {
			t.Errorf("%s: got %+v with %s, %v, want %+v with room for the longest deadline", name, got, left, err, want)
		}
	}
}

func TestMalformedEvents(t *testing.T) {
	t.Parallel()
	handle := dispatch.Handler(func(context.Context, inferences.DispatchCall, time.Time) error {
		t.Error("got a call of ServePool, want none")
		return nil
	}, func() time.Time { return now })
	for _, event := range []string{`{}`, `{"tenant":"acme"}`, `{"pool":"pool0"}`, `[]`} {
		var invalid lambdakit.InvalidInput
		if _, err := handle(t.Context(), json.RawMessage(event)); !errors.As(err, &invalid) {
			t.Errorf("%s: got %v, want InvalidInput", event, err)
		}
	}
}
