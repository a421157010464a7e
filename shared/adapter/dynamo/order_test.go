package dynamo_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// leaping is a clock whose timers advance it.
type leaping struct{ *clock.Virtual }

// NewTimer implements clock.Clock.
func (l leaping) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	l.Advance(d)
	return l.Virtual.NewTimer(0)
}

// TestSeedDeterminesRequests checks that a store makes the same requests in each execution,
// even when it retries. It has its own clock and random numbers, and makes one request at a
// time.
func TestSeedDeterminesRequests(t *testing.T) {
	t.Parallel()
	trace := func() (calls []string) {
		now := leaping{clock.NewVirtual(time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC))}
		faults := awsfake.Seeded(7, 0.2, awsfake.Lost, awsfake.Unsure, awsfake.Throttled, awsfake.Conflicted, awsfake.Partial)
		db := awsfake.NewDynamoDB(awsfake.DynamoDBConfig{
			Clock: now, Seed: 7, Lag: time.Second, Stale: 0.3,
			Plan: func(c awsfake.Call) awsfake.Fate {
				fate := faults(c)
				calls = append(calls, fmt.Sprint(now.Now(), c, fate))
				return fate
			},
		})
		if err := awsfake.CreateTable(t.Context(), db.AWS(), "sortie"); err != nil {
			t.Fatal(err)
		}
		s, err := dynamo.Open(db.AWS(), dynamo.Config{
			Table: "sortie", Clock: now, Random: rand.New(rand.NewPCG(7, 7)).Uint64, Concurrency: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			d := run.New(export(fmt.Sprint("run-", i)), now.Now())
			if _, err := s.Create(t.Context(), port.WriteOf(d), nil); err != nil {
				t.Fatal(err)
			}
			d.Run.Version = 1
			if d, err = run.Decide(d.Run, run.Admitted{Pool: "p", Limit: 30}, now.Now()); err != nil {
				t.Fatal(err)
			}
			if err := s.Commit(t.Context(), port.WriteOf(d)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Reconcile(t.Context(), "default", "p"); err != nil {
			t.Fatal(err)
		}
		return calls
	}
	if diff := cmp.Diff(trace(), trace()); diff != "" {
		t.Error(diff)
	}
}
