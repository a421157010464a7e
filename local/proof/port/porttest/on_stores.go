package porttest

import (
	"context"
	"testing"
	"time"
)

// onStore is a test with its own store.
type onStore[S any] struct {
	*testing.T
	ctx    context.Context
	store  S
	settle func()
	now    time.Time
}

// onStores runs the tests of a suite, each with its own store. of makes a test of the suite
// from an onStore.
func onStores[S, C any](t *testing.T, open func(t *testing.T) (s S, settle func()), of func(onStore[S]) C, tests map[string]func(C)) {
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, settle := open(t)
			if settle == nil {
				settle = func() {}
			}
			test(of(onStore[S]{T: t, ctx: t.Context(), store: store, settle: settle, now: time.Date(2001, 2, 3, 4, 5, 6, 789_000_001, time.UTC)}))
		})
	}
}
