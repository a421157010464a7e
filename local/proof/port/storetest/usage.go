package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/usage"
	"github.com/sortie-dev/sortie/shared/port"
)

// tokens are those of a charge of used.
var tokens = usage.Tokens{Input: 30, Cached: 20, Output: 10}

// charging returns the write that ends a run and charges used to a model, a key and a session.
func (s *storeTest) charging(r run.Run, model, key, session string) port.Write {
	s.Helper()
	w := s.settling(r, used)
	w.Run.Reservation.UsedTokens = tokens
	w.Ledger.Charge = &usage.Charge{
		Model: model, Key: key, Session: session, At: s.now,
		Sum: usage.Sum{Tasks: used.Turns, Tokens: tokens, TimeMS: used.TimeMS, CostNano: used.CostNano},
	}
	return w
}

// times returns n charges of used.
func times(n int64) usage.Sum {
	return usage.Sum{
		Tasks: n * used.Turns, Tokens: usage.Tokens{Input: n * tokens.Input, Cached: n * tokens.Cached, Output: n * tokens.Output},
		TimeMS: n * used.TimeMS, CostNano: n * used.CostNano,
	}
}

// wantUsage checks the entries of a tenant, read in pages of two.
func (s *storeTest) wantUsage(tenant, from, to string, sessions bool, want ...usage.Entry) {
	s.Helper()
	var got []usage.Entry
	for after := ""; ; {
		page, err := s.store.Usage(s.ctx, tenant, from, to, sessions, after, 2)
		s.ok(err)
		if len(page) > 2 {
			s.Fatalf("got a page of %d entries, want at most 2", len(page))
		}
		if got = append(got, page...); len(page) < 2 {
			break
		}
		after = page[1].ID()
	}
	if !slices.Equal(got, want) {
		s.Fatalf("got usage %+v, want %+v", got, want)
	}
}

func (s *storeTest) day() string { return usage.DayOf(s.now) }

func chargeIsCountedOnce(s *storeTest) {
	r := s.holding("a", budget.ScopeTenant)
	w := s.charging(r, "m#/1", "alice", "talk 1")
	s.ok(s.store.Commit(s.ctx, w))
	all := usage.Entry{Tenant: "acme", Name: usage.Name{Day: s.day(), Model: "m#/1", Key: "alice"}, Sum: times(1)}
	own := all
	own.Session = "talk 1"
	s.wantUsage("acme", s.day(), s.day(), false, all)
	s.wantUsage("acme", s.day(), s.day(), true, own)
	if err := s.store.Commit(s.ctx, w); !errors.Is(err, port.ErrConflict) {
		s.Fatalf("got %v for the second commit of a charge, want ErrConflict", err)
	}
	s.ok(s.store.Commit(s.ctx, s.charging(s.holding("b", budget.ScopeTenant), "m#/1", "alice", "")))
	all.Sum = times(2)
	s.wantUsage("acme", s.day(), s.day(), false, all)
	s.wantUsage("acme", s.day(), s.day(), true, own)
	s.wantUsage("zenith", s.day(), s.day(), false)
}

// usageByDay charges tasks of three days, two of them in one commit.
func usageByDay(s *storeTest) {
	first := s.now
	entry := func(model string, n int64) usage.Entry {
		return usage.Entry{Tenant: "acme", Name: usage.Name{Day: s.day(), Model: model, Key: "k"}, Sum: times(n)}
	}
	var want []usage.Entry
	for i := range 3 {
		s.now = first.Add(time.Duration(i) * 24 * time.Hour)
		one, two := s.holding(fmt.Sprint("one-", i), budget.ScopeTenant), s.holding(fmt.Sprint("two-", i), budget.ScopeTenant)
		s.ok(s.store.Commit(s.ctx, s.charging(one, "m", "k", ""), s.charging(two, "m", "k", "")))
		s.ok(s.store.Commit(s.ctx, s.charging(s.holding(fmt.Sprint("three-", i), budget.ScopeTenant), "other", "k", "")))
		want = append(want, entry("m", 2), entry("other", 1))
	}
	s.wantUsage("acme", want[0].Day, want[5].Day, false, want...)
	s.wantUsage("acme", want[2].Day, want[2].Day, false, want[2:4]...)
	s.wantUsage("acme", want[0].Day, want[2].Day, false, want[:4]...)
	s.wantUsage("acme", want[0].Day, want[5].Day, true)
}

// chargeRace charges many tasks to one usage at the same time.
func chargeRace(s *storeTest) {
	const runs = 12
	ends := make([]port.Write, runs)
	for i := range ends {
		ends[i] = s.charging(s.holding(fmt.Sprint("run-", i), budget.ScopeTenant), "m", "k", fmt.Sprint(i%2))
	}
	at := s.day()
	s.race(runs, func(i int) error { return s.store.Commit(s.ctx, ends[i]) }, func(error) bool { return false })
	name := usage.Name{Day: at, Model: "m", Key: "k"}
	zero, one := name, name
	zero.Session, one.Session = "0", "1"
	s.wantUsage("acme", at, at, false, usage.Entry{Tenant: "acme", Name: name, Sum: times(runs)})
	s.wantUsage("acme", at, at, true, usage.Entry{Tenant: "acme", Name: zero, Sum: times(runs / 2)}, usage.Entry{Tenant: "acme", Name: one, Sum: times(runs / 2)})
}
