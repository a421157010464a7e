package storetest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// commitHeartbeat commits a small fact together with a change of the run's heartbeat item.
func (s *storeTest) commitHeartbeat(r run.Run, change run.HeartbeatChange) run.Run {
	s.Helper()
	w := s.decide(r, run.ExecutionChecked{})
	w.Heartbeat = change
	s.ok(s.store.Commit(s.ctx, w))
	return after(w)
}

func (s *storeTest) wantHeartbeat(ref run.Ref, want run.Heartbeat) {
	s.Helper()
	got, err := s.store.LastHeartbeat(s.ctx, ref)
	s.ok(err)
	s.same(want, got)
}

func (s *storeTest) wantNoHeartbeat(ref run.Ref) {
	s.Helper()
	if got, err := s.store.LastHeartbeat(s.ctx, ref); !isNotFound(err) {
		s.Fatalf("heartbeat of %s: got %+v, %v; want ErrNotFound", ref.ID, got, err)
	}
}

// worker returns a heartbeat of a worker whose last contact is now.
func (s *storeTest) worker(id string) run.Heartbeat {
	return run.Heartbeat{
		Attempt: 1, WorkerID: id, At: s.later(), Token: "token 2", Generation: 2, TokenAt: s.later(), ForwardEvery: 45 * time.Second,
	}
}

func heartbeatIsOpened(s *storeTest) {
	r := s.create(sample("acme", "run-1"))
	s.wantNoHeartbeat(r.Ref())
	whole := s.worker("w-ü")
	whole.Progress, whole.Message, whole.Cancel = new(45), `half "way" <漢字>`, new("")
	r = s.commitHeartbeat(r, run.HeartbeatChange{Open: &whole})
	s.wantHeartbeat(r.Ref(), whole)
	// A new heartbeat replaces the whole item. Zero fields do not keep the old values.
	plain := run.Heartbeat{Attempt: 2, WorkerID: "other", At: s.later()}
	r = s.commitHeartbeat(r, run.HeartbeatChange{Open: &plain})
	s.wantHeartbeat(r.Ref(), plain)
	// A commit without a change keeps the item.
	r = s.commitHeartbeat(r, run.HeartbeatChange{})
	s.wantHeartbeat(r.Ref(), plain)
	r = s.commitHeartbeat(r, run.HeartbeatChange{Close: true})
	s.wantNoHeartbeat(r.Ref())
	s.wantRun(s.commitHeartbeat(r, run.HeartbeatChange{Close: true}))
	s.wantNoHeartbeat(run.Ref{Tenant: "acme", ID: "never"})
}

func heartbeatIsRecorded(s *storeTest) {
	r := s.create(sample("acme", "run-1"))
	want := s.worker("w")
	r = s.commitHeartbeat(r, run.HeartbeatChange{Open: &want})
	heartbeat := func(b run.Heartbeat) {
		s.Helper()
		got, err := s.store.Heartbeat(s.ctx, r.Ref(), b)
		s.ok(err)
		want.Previous = got.Previous
		s.same(want, got)
		s.wantHeartbeat(r.Ref(), want)
	}
	want.At, want.Progress, want.Message, want.Received = s.later(), new(0), "begun", want.Received+1
	// Only a commit changes the token and the cancel request.
	heartbeat(run.Heartbeat{
		Attempt: 1, WorkerID: "w", At: want.At, Progress: new(0), Message: "begun",
		Token: "another", Generation: 9, Cancel: new("another"), Received: 1,
	})
	// A report without details keeps the stored details.
	want.At = s.later()
	heartbeat(run.Heartbeat{Attempt: 1, WorkerID: "w", At: want.At})
	// An earlier or repeated report does not move the last contact back.
	want.Progress, want.Received = new(50), want.Received+1
	heartbeat(run.Heartbeat{Attempt: 1, WorkerID: "w", At: want.At.Add(-time.Second), Progress: new(50), Received: 1})
	heartbeat(run.Heartbeat{Attempt: 1, WorkerID: "w", At: want.At})
	s.wantRun(r)
}

func heartbeatOfAnother(s *storeTest) {
	r := s.create(sample("acme", "run-1"))
	other := s.create(sample("zenith", "run-1"))
	refused := func(ref run.Ref, attempt int, worker string) {
		s.Helper()
		b, err := s.store.Heartbeat(s.ctx, ref, run.Heartbeat{Attempt: attempt, WorkerID: worker, At: s.later(), Message: "!"})
		if !isNotFound(err) {
			s.Fatalf("heartbeat of %s/%s attempt %d of %q: got %+v, %v; want ErrNotFound", ref.Tenant, ref.ID, attempt, worker, b, err)
		}
	}
	refused(r.Ref(), 1, "w")
	want := s.worker("w")
	r = s.commitHeartbeat(r, run.HeartbeatChange{Open: &want})
	refused(r.Ref(), 2, "w")
	refused(r.Ref(), 1, "v")
	refused(r.Ref(), 1, "")
	refused(other.Ref(), 1, "w")
	refused(run.Ref{Tenant: "acme", ID: "never"}, 1, "w")
	s.wantHeartbeat(r.Ref(), want)
	s.wantNoHeartbeat(other.Ref())
	r = s.commitHeartbeat(r, run.HeartbeatChange{Close: true})
	refused(r.Ref(), 1, "w")
	s.wantNoHeartbeat(r.Ref())
}

func heartbeatIsChanged(s *storeTest) {
	r := s.create(sample("acme", "run-1"))
	// Without an open item, the change has no effect and returns no error.
	r = s.commitHeartbeat(r, run.HeartbeatChange{Token: new("token 3"), Generation: 3, TokenAt: s.later(), Cancel: new("why")})
	s.wantNoHeartbeat(r.Ref())
	want := s.worker("w")
	r = s.commitHeartbeat(r, run.HeartbeatChange{Open: &want})
	want.Token, want.Generation, want.TokenAt = "token 3", 3, s.later()
	r = s.commitHeartbeat(r, run.HeartbeatChange{Token: new("token 3"), Generation: 3, TokenAt: want.TokenAt})
	s.wantHeartbeat(r.Ref(), want)
	want.Cancel = new("why")
	r = s.commitHeartbeat(r, run.HeartbeatChange{Cancel: new("why")})
	s.wantHeartbeat(r.Ref(), want)
	// A heartbeat returns the cancel request without changing it.
	want.Previous, want.At = want.At, s.later()
	got, err := s.store.Heartbeat(s.ctx, r.Ref(), run.Heartbeat{Attempt: 1, WorkerID: "w", At: want.At})
	s.ok(err)
	s.same(want, got)
	want.Token, want.Generation, want.TokenAt = "", 4, s.later()
	r = s.commitHeartbeat(r, run.HeartbeatChange{Token: new(""), Generation: 4, TokenAt: want.TokenAt})
	s.wantHeartbeat(r.Ref(), want)
}

// previousHeartbeat checks that each heartbeat stores the time of the previous one.
func previousHeartbeat(s *storeTest) {
	r := s.create(sample("acme", "run-1"))
	want := s.worker("w")
	r = s.commitHeartbeat(r, run.HeartbeatChange{Open: &want})
	first := want.At
	heartbeat := func(at time.Time) {
		s.Helper()
		if !at.Before(want.At) {
			want.Previous, want.At = want.At, at
		}
		got, err := s.store.Heartbeat(s.ctx, r.Ref(), run.Heartbeat{Attempt: 1, WorkerID: "w", At: at})
		s.ok(err)
		s.same(want, got)
	}
	heartbeat(s.later())
	heartbeat(s.later())
	heartbeat(first) // later heartbeats have arrived before it
	heartbeat(want.At)
	heartbeat(s.later())
}

// heartbeatsAreDue checks that HeartbeatsDue returns the runs whose heartbeat limit has passed.
func heartbeatsAreDue(s *storeTest) {
	due := func(now time.Time) (ids []string) {
		s.Helper()
		for after := ""; ; {
			refs, next, err := s.store.HeartbeatsDue(s.ctx, now, after, 3)
			s.ok(err)
			for _, ref := range refs {
				ids = append(ids, ref.Tenant+"/"+ref.ID)
			}
			if after = next; next == "" {
				slices.Sort(ids)
				return ids
			}
		}
	}
	began := s.later()
	var runs []run.Run
	for i, timeout := range []time.Duration{0, time.Minute, 2 * time.Minute, time.Minute, time.Minute, 48 * time.Hour, time.Minute, time.Minute} {
		r := s.create(sample([]string{"acme", "zenith"}[i%2], fmt.Sprint("run-", i)))
		opened := run.Heartbeat{Attempt: 1, WorkerID: "w", At: began, Timeout: timeout}
		runs = append(runs, s.commitHeartbeat(r, run.HeartbeatChange{Open: &opened}))
	}
	s.same([]string(nil), due(began.Add(time.Minute-time.Nanosecond)))
	all := []string{"acme/run-4", "acme/run-6", "zenith/run-1", "zenith/run-3", "zenith/run-7"}
	s.same(all, due(began.Add(time.Minute)))
	s.same(slices.Insert(slices.Clone(all), 0, "acme/run-2"), due(began.Add(2*time.Minute)))
	// A heartbeat moves the limit, and the end of the attempt removes it.
	_, err := s.store.Heartbeat(s.ctx, runs[4].Ref(), run.Heartbeat{Attempt: 1, WorkerID: "w", At: began.Add(30 * time.Second)})
	s.ok(err)
	s.commitHeartbeat(runs[6], run.HeartbeatChange{Close: true})
	s.same(all[2:], due(began.Add(89*time.Second)))
	s.same([]string{"acme/run-2", "acme/run-4", "zenith/run-1", "zenith/run-3", "zenith/run-7"}, due(began.Add(2*time.Minute)))
}

func heartbeatIsEvaluated(s *storeTest) {
	r := s.create(sample("acme", "run-1"))
	other := s.create(sample("acme", "run-2"))
	opened := s.worker("w")
	judge := func(at time.Time) error {
		w := s.decide(r, run.ExecutionChecked{})
		w.Heartbeat = run.HeartbeatChange{Evaluated: at, Close: true}
		err := s.store.Commit(s.ctx, w, s.decide(other, run.ExecutionChecked{}))
		if conflict, ok := asConflict(err); isConflict(err) && (!ok || conflict.Ref != r.Ref()) {
			s.Fatalf("got %v, want a conflict of the run", err)
		}
		return err
	}
	if err := judge(opened.At); !isConflict(err) {
		s.Fatalf("evaluation without an open item: got %v, want a conflict", err)
	}
	r = s.commitHeartbeat(r, run.HeartbeatChange{Open: &opened})
	delivered := opened
	delivered.Previous, delivered.At = opened.At, s.later()
	_, err := s.store.Heartbeat(s.ctx, r.Ref(), delivered)
	s.ok(err)
	for _, at := range []time.Time{opened.At, delivered.At.Add(-1), delivered.At.Add(1)} {
		if err := judge(at); !isConflict(err) {
			s.Fatalf("evaluation of another heartbeat: got %v, want a conflict", err)
		}
	}
	// The commits had no effect.
	s.wantHeartbeat(r.Ref(), delivered)
	s.wantRun(r)
	s.wantRun(other)
	s.ok(judge(delivered.At))
	s.wantNoHeartbeat(r.Ref())
	if _, err := s.store.Heartbeat(s.ctx, r.Ref(), delivered); !isNotFound(err) {
		s.Fatalf("heartbeat after the evaluation: got %v, want ErrNotFound", err)
	}
}

// heartbeatRace commits a heartbeat and an evaluation of the same item concurrently. Exactly
// one of them must succeed.
func heartbeatRace(s *storeTest) {
	for i := range 20 {
		r := s.create(sample("acme", fmt.Sprint("run-", i)))
		opened := s.worker("w")
		r = s.commitHeartbeat(r, run.HeartbeatChange{Open: &opened})
		verdict := s.decide(r, run.ExecutionChecked{})
		verdict.Heartbeat = run.HeartbeatChange{Evaluated: opened.At, Close: true}
		heartbeat := run.Heartbeat{Attempt: 1, WorkerID: "w", At: s.later()}
		var judged, delivered error
		var both sync.WaitGroup
		both.Go(func() { judged = s.store.Commit(s.ctx, verdict) })
		both.Go(func() { _, delivered = s.store.Heartbeat(s.ctx, r.Ref(), heartbeat) })
		both.Wait()
		switch {
		case judged == nil && isNotFound(delivered):
			s.wantNoHeartbeat(r.Ref())
		case isConflict(judged) && delivered == nil:
			opened.Previous, opened.At = opened.At, heartbeat.At
			s.wantHeartbeat(r.Ref(), opened)
		default:
			s.Fatalf("got evaluation %v and heartbeat %v, want one to succeed", judged, delivered)
		}
	}
}

// manyHeartbeats sends many heartbeats concurrently. The newest one must be stored.
func manyHeartbeats(s *storeTest) {
	r := s.create(sample("acme", "run-1"))
	opened := s.worker("w")
	r = s.commitHeartbeat(r, run.HeartbeatChange{Open: &opened})
	const calls = 50
	failed := make(chan error, calls)
	for i := range calls {
		go func() {
			_, err := s.store.Heartbeat(s.ctx, r.Ref(), run.Heartbeat{
				Attempt: 1, WorkerID: "w", At: opened.At.Add(time.Duration(i) * time.Second),
			})
			failed <- err
		}()
	}
	for range calls {
		s.ok(<-failed)
	}
	opened.At = opened.At.Add((calls - 1) * time.Second)
	got, err := s.store.LastHeartbeat(s.ctx, r.Ref())
	s.ok(err)
	opened.Previous = got.Previous // any of the other heartbeats
	s.same(opened, got)
	s.wantRun(r)
}

func heartbeatOfAPurgedRun(s *storeTest) {
	for _, id := range []string{"replaced", "purged"} {
		r := s.create(shortLived("acme", id))
		opened := s.worker("w")
		r = s.commitHeartbeat(r, run.HeartbeatChange{Open: &opened})
		r = s.apply(r, cancel())
		for n := 1; id == "purged" && n > 0; {
			var err error
			n, err = s.store.Purge(s.ctx, r.ExpiresAt.Add(time.Second), 10)
			s.ok(err)
		}
		again := s.create(sample("acme", id))
		s.wantNoHeartbeat(again.Ref())
	}
}

func claimIsRecorded(s *storeTest) {
	for _, want := range []bool{false, true, true} {
		claimed, err := s.store.Claimed(s.ctx)
		s.ok(err)
		s.same(want, claimed)
		s.ok(s.store.Claim(s.ctx))
	}
}

func receptionIsRecorded(s *storeTest) {
	var last port.Reception
	want := func(r port.Reception) {
		s.Helper()
		got, err := s.store.Reception(s.ctx)
		s.ok(err)
		s.same(r, got)
	}
	want(last)
	s.ok(s.store.RecordReception(s.ctx, last, last)) // repeats the last record, as a probe of the store
	want(last)
	for range 2 {
		next := port.Reception{Since: s.later(), At: s.later(), Crowded: !last.Crowded}
		s.ok(s.store.RecordReception(s.ctx, last, next))
		want(next)
		s.ok(s.store.RecordReception(s.ctx, next, next))
		want(next)
		// A change that is based on another record conflicts.
		for _, before := range []port.Reception{last, {Since: next.Since, At: s.later()}, {Since: s.later(), At: next.At}, {Since: next.Since, At: next.At, Crowded: !next.Crowded}} {
			if err := s.store.RecordReception(s.ctx, before, port.Reception{At: s.later()}); !isConflict(err) {
				s.Fatalf("record after %+v: got %v, want a conflict", before, err)
			}
		}
		want(next)
		last = next
	}
	next := port.Reception{At: s.later()}
	s.ok(s.store.RecordReception(s.ctx, last, next))
	want(next)
}

// receptionRace records concurrently, each record based on the previous one.
func receptionRace(s *storeTest) {
	const calls = 20
	at := s.later()
	failed := make(chan error, calls)
	for i := range calls {
		go func() {
			for {
				before, err := s.store.Reception(s.ctx)
				if err == nil {
					after := port.Reception{Since: at.Add(time.Duration(i)), At: later(before.At, at).Add(time.Second)}
					err = s.store.RecordReception(s.ctx, before, after)
				}
				if !isConflict(err) {
					failed <- err
					return
				}
			}
		}()
	}
	for range calls {
		s.ok(<-failed)
	}
	got, err := s.store.Reception(s.ctx)
	s.ok(err)
	s.same(at.Add(calls*time.Second), got.At)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
