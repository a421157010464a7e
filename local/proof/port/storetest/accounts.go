package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

var (
	task   = budget.Amount{Turns: 1, Tokens: 100, TimeMS: 1000, CostNano: 200_000}
	used   = budget.Amount{Turns: 1, Tokens: 40, TimeMS: 1500, CostNano: 80_000}
	scopes = []string{budget.ScopeTenant, budget.ProjectScope("a/b#c"), budget.SessionScope("s")}
)

// reserving returns the write that creates a run with a reservation of task.
func (s *storeTest) reserving(id string, scopes ...string) port.Write {
	r := sample("acme", id)
	r.Reservation = (run.Reservation{Scopes: scopes}).Renewed(task)
	return port.WriteOf(run.New(r, s.later()))
}

// holding creates a run with a reservation of task and returns the stored record.
func (s *storeTest) holding(id string, scopes ...string) run.Run {
	s.Helper()
	w := s.reserving(id, scopes...)
	existing, err := s.store.Create(s.ctx, w, nil)
	if err != nil || existing != nil {
		s.Fatalf("create %s: got %v, %v; want a new run", id, existing, err)
	}
	return after(w)
}

// settling returns the write that ends a run and settles its reservation with the used amount.
func (s *storeTest) settling(r run.Run, used budget.Amount) port.Write {
	s.Helper()
	w := s.decide(r, run.CancelRequested{By: "x"})
	before := *r.Reservation
	w.Run.Reservation = r.Reservation.Noted(used).Settled()
	w.Ledger = budget.Between(before.Scopes, before.Held, before.Used, w.Run.Reservation.Held, w.Run.Reservation.Used, s.now, budget.Standard())
	return w
}

// wantAccount checks the held and spent amounts of an account.
func (s *storeTest) wantAccount(scope string, held, spent budget.Amount) budget.Account {
	s.Helper()
	a, err := s.store.Account(s.ctx, "acme", scope)
	s.ok(err)
	if a.Tenant != "acme" || a.Scope != scope || a.Held != held || a.Spent != spent {
		s.Fatalf("got account %+v of %s, want %+v held and %+v spent", a, scope, held, spent)
	}
	return a
}

// wantNoBudget checks that err says that the account of the scope has too little of a part, and
// how much is left.
func (s *storeTest) wantNoBudget(err error, scope string, part budget.Part, left int64) {
	s.Helper()
	short, ok := errors.AsType[*port.NoBudget](err)
	if !ok || !errors.Is(err, port.ErrNoBudget) || short.Scope != scope || short.Part != part || short.Left != left {
		s.Fatalf("got %v, want %d %s left of %s", err, left, part, scope)
	}
}

func (s *storeTest) limit(scope string, l budget.Limit) budget.Account {
	s.Helper()
	before, err := s.store.Account(s.ctx, "acme", scope)
	if !isNotFound(err) {
		s.ok(err)
	}
	a, err := s.store.PutLimit(s.ctx, "acme", scope, l, before.Version, s.later())
	s.ok(err)
	return a
}

func accountFollowsRuns(s *storeTest) {
	for _, scope := range scopes {
		if a, err := s.store.Account(s.ctx, "acme", scope); !isNotFound(err) {
			s.Fatalf("got account %+v (%v), want ErrNotFound", a, err)
		}
	}
	r := s.holding("a", scopes...)
	created := s.now
	s.wantRun(r)
	for _, scope := range scopes {
		a := s.wantAccount(scope, task, budget.Amount{})
		expires := time.Time{}
		if _, ok := budget.SessionOf(scope); ok {
			expires = created.Add(budget.SessionTTL)
		}
		if !a.CreatedAt.Equal(created) || !a.ExpiresAt.Equal(expires) || a.Version != 0 {
			s.Errorf("got account %+v, want one from %v that expires %v", a, created, expires)
		}
	}
	other := s.holding("b", budget.ScopeTenant)
	s.wantAccount(budget.ScopeTenant, task.Plus(task), budget.Amount{})
	s.ok(s.store.Commit(s.ctx, s.settling(r, used)))
	s.wantAccount(budget.ScopeTenant, task, used)
	for _, scope := range scopes[1:] {
		s.wantAccount(scope, budget.Amount{}, used)
	}
	s.apply(other, run.CancelRequested{By: "x"})
	s.wantAccount(budget.ScopeTenant, budget.Amount{}, used)
	if a, err := s.store.Account(s.ctx, "zenith", budget.ScopeTenant); !isNotFound(err) {
		s.Errorf("got account %+v (%v) of another tenant, want ErrNotFound", a, err)
	}
}

func limitIsKept(s *storeTest) {
	limit := budget.Limit{Tokens: new(int64(250)), CostNano: new(int64(1_000_000_000_000))}
	a := s.limit(budget.ScopeTenant, limit)
	s.same(budget.Account{Tenant: "acme", Scope: budget.ScopeTenant, Limit: limit, Version: 1, CreatedAt: s.now}, a)
	first, second := s.holding("a", scopes...), s.holding("b", scopes...)
	refused := s.reserving("c", scopes...)
	_, err := s.store.Create(s.ctx, refused, nil)
	s.wantNoBudget(err, budget.ScopeTenant, budget.Tokens, 50)
	s.wantNone(refused.Run.Ref())
	for _, scope := range scopes {
		s.wantAccount(scope, task.Plus(task), budget.Amount{})
	}
	// A settlement is never rejected. A later run can hold the amount that it releases.
	s.limit(budget.ScopeTenant, budget.Limit{Tokens: new(int64(10))})
	s.ok(s.store.Commit(s.ctx, s.settling(first, used)))
	_, err = s.store.Create(s.ctx, refused, nil)
	s.wantNoBudget(err, budget.ScopeTenant, budget.Tokens, 0)
	a = s.limit(budget.ScopeTenant, limit)
	if a.Version != 3 || a.Held != task || a.Spent != used {
		s.Errorf("got account %+v after two changes of its limit", a)
	}
	s.holding("d", scopes...)
	s.ok(s.store.Commit(s.ctx, s.settling(second, used)))
	s.wantAccount(budget.ScopeTenant, task, used.Plus(used))
	// An account without its own limit has the default limit.
	s.limit(budget.ScopeTenant, budget.Limit{})
	low := s.reserving("e", budget.ScopeTenant)
	low.Ledger.Defaults.Tenant = budget.Limit{TimeMS: new(int64(4999))}
	_, err = s.store.Create(s.ctx, low, nil)
	s.wantNoBudget(err, budget.ScopeTenant, budget.Time, 999)
	low.Ledger.Defaults.Tenant.TimeMS = new(int64(5000))
	_, err = s.store.Create(s.ctx, low, nil)
	s.ok(err)
}

// attemptHoldsAgain commits a hold for a further attempt.
func attemptHoldsAgain(s *storeTest) {
	scope := budget.ProjectScope("p")
	s.limit(scope, budget.Limit{Tokens: new(int64(150))})
	r := s.holding("a", scope)
	again := func(id string) port.Write {
		w := s.decide(r, admitted("p", 0))
		before := *r.Reservation
		w.Run.Reservation = before.Renewed(task.Plus(budget.Amount{Tokens: 51}))
		w.Ledger = budget.Between(before.Scopes, before.Held, before.Used, w.Run.Reservation.Held, w.Run.Reservation.Used, s.now, budget.Standard())
		return w
	}
	s.wantNoBudget(s.store.Commit(s.ctx, again("a")), scope, budget.Tokens, 50)
	s.wantRun(r)
	s.wantAccount(scope, task, budget.Amount{})
	s.limit(scope, budget.Limit{Tokens: new(int64(151))})
	w := again("a")
	s.ok(s.store.Commit(s.ctx, w))
	s.wantRun(after(w))
	s.wantAccount(scope, task.Plus(budget.Amount{Tokens: 51}), budget.Amount{})
}

func sessionIsClosed(s *storeTest) {
	scope := budget.SessionScope("s")
	var last run.Run
	for i := range budget.SessionTurns {
		last = s.holding(fmt.Sprint("turn-", i), scope)
		if i%2 == 0 {
			s.ok(s.store.Commit(s.ctx, s.settling(last, used)))
		}
	}
	ninth := s.reserving("ninth", scope)
	_, err := s.store.Create(s.ctx, ninth, nil)
	s.wantNoBudget(err, scope, budget.Turns, 0)
	s.wantNone(ninth.Run.Ref())
	// Each task extends the lifetime of the session.
	first := s.holding("first", budget.SessionScope("t"))
	s.now = s.now.Add(budget.SessionTTL - 2*time.Second)
	s.holding("second", budget.SessionScope("t"))
	s.now = s.now.Add(budget.SessionTTL - time.Second)
	late := s.reserving("late", budget.SessionScope("t"))
	_, err = s.store.Create(s.ctx, late, nil)
	s.wantNoBudget(err, budget.SessionScope("t"), budget.Expired, 0)
	s.wantNone(late.Run.Ref())
	s.ok(s.store.Commit(s.ctx, s.settling(first, used)))
	s.wantAccount(budget.SessionScope("t"), task, used)
	if err := s.store.CloseAccount(s.ctx, "acme", budget.SessionScope("t"), s.now); !isNotFound(err) {
		s.Errorf("got %v for the closing of an expired session, want ErrNotFound", err)
	}
	if err := s.store.CloseAccount(s.ctx, "acme", budget.SessionScope("none"), s.now); !isNotFound(err) {
		s.Errorf("got %v for the closing of no session, want ErrNotFound", err)
	}
}

// closeIsFinal closes a session between the decision and the commit of a task.
func closeIsFinal(s *storeTest) {
	scope := budget.SessionScope("u")
	open := s.holding("open", scope)
	expires := s.now.Add(budget.SessionTTL)
	before := s.reserving("decided-before", scope)
	s.ok(s.store.CloseAccount(s.ctx, "acme", scope, s.later()))
	if a := s.wantAccount(scope, task, budget.Amount{}); a.Open(s.now) || !a.Closed || !a.ExpiresAt.Equal(expires) {
		s.Errorf("got the account %+v, want it closed, with the expiry %v", a, expires)
	}
	for _, w := range []port.Write{before, s.reserving("decided-later", scope)} {
		_, err := s.store.Create(s.ctx, w, nil)
		s.wantNoBudget(err, scope, budget.Closed, 0)
		s.wantNone(w.Run.Ref())
	}
	if err := s.store.CloseAccount(s.ctx, "acme", scope, s.later()); !isNotFound(err) {
		s.Errorf("got %v for the second closing, want ErrNotFound", err)
	}
	s.ok(s.store.Commit(s.ctx, s.settling(open, used))) // it settles its held amount
	if a := s.wantAccount(scope, budget.Amount{}, used); a.Open(s.now) {
		s.Errorf("got the account %+v after a settlement, want it closed", a)
	}
}

// closeEndsALimit closes a session with a limit but without a task, and therefore without an
// expiry.
func closeEndsALimit(s *storeTest) {
	scope := budget.SessionScope("limited")
	if a := s.limit(scope, budget.Limit{Tokens: new(int64(5))}); !a.ExpiresAt.IsZero() || !a.Open(s.now.AddDate(1, 0, 0)) {
		s.Errorf("got %+v, want an account that does not expire before its first task", a)
	}
	closed := s.later()
	s.ok(s.store.CloseAccount(s.ctx, "acme", scope, closed))
	a := s.wantAccount(scope, budget.Amount{}, budget.Amount{})
	if a.Open(s.now) || !a.ExpiresAt.Equal(closed) || !a.PurgeAt().Equal(closed.Add(budget.Retention)) {
		s.Errorf("got %+v, want it closed and to be purged a day later", a)
	}
}

// expiryMovesForward commits two tasks of a session, the later one first.
func expiryMovesForward(s *storeTest) {
	scope := budget.SessionScope("s")
	s.holding("first", scope)
	early, late := s.reserving("early", scope), s.reserving("late", scope)
	for _, w := range []port.Write{late, early} {
		_, err := s.store.Create(s.ctx, w, nil)
		s.ok(err)
		if a, err := s.store.Account(s.ctx, "acme", scope); err != nil || !a.ExpiresAt.Equal(late.Ledger.At.Add(budget.SessionTTL)) {
			s.Errorf("got %+v (%v) after %s, want the expiry that the later task set", a, err, w.Run.ID)
		}
	}
}

// budgetAndKey repeats a request after its budget was used up, and commits an outdated decision
// for which there is no budget.
func budgetAndKey(s *storeTest) {
	s.limit(budget.ScopeTenant, budget.Limit{Turns: new(int64(1))})
	key := &port.IdempotencyKey{Key: "k", Digest: "d"}
	w := s.reserving("a", scopes...)
	_, err := s.store.Create(s.ctx, w, key)
	s.ok(err)
	for _, id := range []string{"a", "b"} {
		existing, err := s.store.Create(s.ctx, s.reserving(id, scopes...), key)
		if err != nil || existing == nil || existing.ID != "a" {
			s.Fatalf("got %v, %v for a known key, want run a", existing, err)
		}
	}
	s.wantAccount(budget.ScopeTenant, task, budget.Amount{})
	r := after(w)
	stale := s.decide(r, admitted("p", 0))
	stale.Run.Reservation = r.Reservation.Renewed(task.Plus(task))
	stale.Ledger = budget.Between(scopes, task, budget.Amount{}, task.Plus(task), budget.Amount{}, s.now, budget.Standard())
	s.apply(r, admitted("p", 0))
	if err := s.store.Commit(s.ctx, stale); !errors.Is(err, port.ErrConflict) {
		s.Errorf("got %v for an outdated decision, want ErrConflict", err)
	}
}

// accountsMoveTogether commits the end of one run together with the creation of another run,
// which needs the released amount.
func accountsMoveTogether(s *storeTest) {
	s.limit(budget.ScopeTenant, budget.Limit{Turns: new(int64(2)), Tokens: new(int64(150))})
	first := s.holding("a", scopes...)
	next := s.reserving("b", budget.ScopeTenant, budget.SessionScope("other"))
	stale := s.settling(first, used)
	stale.Run.Version = 7
	if _, err := s.store.Create(s.ctx, next, nil, stale); !errors.Is(err, port.ErrConflict) {
		s.Fatalf("got %v beside an outdated decision, want ErrConflict", err)
	}
	for _, scope := range scopes {
		s.wantAccount(scope, task, budget.Amount{})
	}
	if _, err := s.store.Create(s.ctx, next, nil, s.settling(first, used)); err != nil {
		s.Fatal(err)
	}
	s.wantAccount(budget.ScopeTenant, task, used)
	s.wantAccount(budget.SessionScope("s"), budget.Amount{}, used)
	s.wantAccount(budget.SessionScope("other"), task, budget.Amount{})
}

// limitIsOfAVersion changes a limit with outdated versions, and from several clients
// concurrently.
func limitIsOfAVersion(s *storeTest) {
	put := func(scope string, tokens, version int64) error {
		_, err := s.store.PutLimit(s.ctx, "acme", scope, budget.Limit{Tokens: &tokens}, version, s.now)
		return err
	}
	s.holding("a", scopes...)
	for _, scope := range []string{budget.ScopeTenant, budget.ProjectScope("new")} {
		for _, stale := range []int64{1, 7} {
			if err := put(scope, 9, stale); !errors.Is(err, port.ErrConflict) {
				s.Errorf("%s: got %v with version %d, want ErrConflict", scope, err, stale)
			}
		}
		s.ok(put(scope, 100, 0))
		if err := put(scope, 9, 0); !errors.Is(err, port.ErrConflict) {
			s.Errorf("%s: got %v with an outdated version, want ErrConflict", scope, err)
		}
		if won := s.race(8, func(i int) error { return put(scope, int64(200+i), 1) }, func(err error) bool { return errors.Is(err, port.ErrConflict) }); won != 1 {
			s.Errorf("%s: got %d changes of one version, want one", scope, won)
		}
		a, err := s.store.Account(s.ctx, "acme", scope)
		s.ok(err)
		if a.Version != 2 || *a.Limit.Tokens < 200 {
			s.Errorf("%s: got %+v, want version 2 with the limit of the race", scope, a)
		}
	}
	s.wantAccount(budget.ScopeTenant, task, budget.Amount{})
}

// budgetRace admits many runs of one budget concurrently.
func budgetRace(s *storeTest) {
	const runs, fit = 20, 7
	s.limit(budget.ScopeTenant, budget.Limit{Tokens: new(fit*task.Tokens + task.Tokens/2)})
	writes := make([]port.Write, runs)
	for i := range writes {
		writes[i] = s.reserving(fmt.Sprint("run-", i), budget.ScopeTenant, budget.SessionScope(fmt.Sprint(i%5)))
	}
	won := s.race(runs, func(i int) error {
		_, err := s.store.Create(s.ctx, writes[i], nil)
		return err
	}, func(err error) bool { return errors.Is(err, port.ErrNoBudget) })
	if won != fit {
		s.Errorf("got %d admitted runs, want %d", won, fit)
	}
	var sum budget.Amount
	var all []run.Run
	for _, w := range writes {
		if r, err := s.store.Load(s.ctx, w.Run.Ref()); err == nil {
			sum, all = sum.Plus(r.Reservation.Held), append(all, r)
		}
	}
	s.wantAccount(budget.ScopeTenant, sum, budget.Amount{})
	ends := make([]port.Write, len(all))
	var spent budget.Amount
	for i, r := range all {
		ends[i], spent = s.settling(r, used), spent.Plus(used)
	}
	if settled := s.race(len(ends), func(i int) error { return s.store.Commit(s.ctx, ends[i]) }, func(error) bool { return false }); settled != fit {
		s.Errorf("got %d settled runs, want %d", settled, fit)
	}
	s.wantAccount(budget.ScopeTenant, budget.Amount{}, spent)
}
