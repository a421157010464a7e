package porttest

import (
	"fmt"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/run"
)

// beaten commits a fact that changes little, with a change to the run's item.
func (s *storeTest) beaten(r run.Run, change run.BeatChange) run.Run {
	s.Helper()
	w := s.decide(r, run.Asked{})
	w.Beat = change
	s.ok(s.store.Commit(s.ctx, w))
	return after(w)
}

func (s *storeTest) wantBeat(ref run.Ref, want run.Beat) {
	s.Helper()
	got, err := s.store.LastBeat(s.ctx, ref)
	s.ok(err)
	s.same(want, got)
}

func (s *storeTest) wantNoBeat(ref run.Ref) {
	s.Helper()
	if got, err := s.store.LastBeat(s.ctx, ref); !isNotFound(err) {
		s.Fatalf("the item of %s is %+v, %v; want ErrNotFound", ref.ID, got, err)
	}
}

// worker is an item of a worker that was just heard.
func (s *storeTest) worker(id string) run.Beat {
	return run.Beat{Attempt: 1, WorkerID: id, At: s.later(), Token: "token 2", Generation: 2}
}

func beatIsOpened(s *storeTest) {
	r := s.create(sample("acme", "run-1"))
	s.wantNoBeat(r.Ref())
	whole := s.worker("w-ü")
	whole.Progress, whole.Message, whole.Cancel = new(45), `half "way" <漢字>`, new("")
	r = s.beaten(r, run.BeatChange{Open: &whole})
	s.wantBeat(r.Ref(), whole)
	// Another one replaces it, and what is zero is not kept from the first.
	plain := run.Beat{Attempt: 2, WorkerID: "other", At: s.later()}
	r = s.beaten(r, run.BeatChange{Open: &plain})
	s.wantBeat(r.Ref(), plain)
	// A commit without a change leaves it.
	r = s.beaten(r, run.BeatChange{})
	s.wantBeat(r.Ref(), plain)
	r = s.beaten(r, run.BeatChange{Close: true})
	s.wantNoBeat(r.Ref())
	s.wantRun(s.beaten(r, run.BeatChange{Close: true}))
	s.wantNoBeat(run.Ref{Tenant: "acme", ID: "never"})
}

func beatIsNoted(s *storeTest) {
	r := s.create(sample("acme", "run-1"))
	want := s.worker("w")
	r = s.beaten(r, run.BeatChange{Open: &want})
	beat := func(b run.Beat) {
		s.Helper()
		got, err := s.store.Beat(s.ctx, r.Ref(), b)
		s.ok(err)
		s.same(want, got)
		s.wantBeat(r.Ref(), want)
	}
	want.At, want.Progress, want.Message = s.later(), new(0), "begun"
	// Token and cancel are a commit's to change.
	beat(run.Beat{
		Attempt: 1, WorkerID: "w", At: want.At, Progress: new(0), Message: "begun",
		Token: "another", Generation: 9, Cancel: new("another"),
	})
	// What is not told stays.
	want.At = s.later()
	beat(run.Beat{Attempt: 1, WorkerID: "w", At: want.At})
	// One that was overtaken does not turn the time back, nor does a repetition.
	want.Progress = new(50)
	beat(run.Beat{Attempt: 1, WorkerID: "w", At: want.At.Add(-time.Second), Progress: new(50)})
	beat(run.Beat{Attempt: 1, WorkerID: "w", At: want.At})
	s.wantRun(r)
}

func beatOfAnother(s *storeTest) {
	r := s.create(sample("acme", "run-1"))
	other := s.create(sample("zenith", "run-1"))
	refused := func(ref run.Ref, attempt int, worker string) {
		s.Helper()
		b, err := s.store.Beat(s.ctx, ref, run.Beat{Attempt: attempt, WorkerID: worker, At: s.later(), Message: "!"})
		if !isNotFound(err) {
			s.Fatalf("a heartbeat of %s/%s attempt %d of %q: %+v, %v; want ErrNotFound", ref.Tenant, ref.ID, attempt, worker, b, err)
		}
	}
	refused(r.Ref(), 1, "w")
	want := s.worker("w")
	r = s.beaten(r, run.BeatChange{Open: &want})
	refused(r.Ref(), 2, "w")
	refused(r.Ref(), 1, "v")
	refused(r.Ref(), 1, "")
	refused(other.Ref(), 1, "w")
	refused(run.Ref{Tenant: "acme", ID: "never"}, 1, "w")
	s.wantBeat(r.Ref(), want)
	s.wantNoBeat(other.Ref())
	r = s.beaten(r, run.BeatChange{Close: true})
	refused(r.Ref(), 1, "w")
	s.wantNoBeat(r.Ref())
}

func beatIsChanged(s *storeTest) {
	r := s.create(sample("acme", "run-1"))
	// Nothing is open: there is nothing to change, and that is no failure.
	r = s.beaten(r, run.BeatChange{Token: new("token 3"), Generation: 3, Cancel: new("why")})
	s.wantNoBeat(r.Ref())
	want := s.worker("w")
	r = s.beaten(r, run.BeatChange{Open: &want})
	want.Token, want.Generation = "token 3", 3
	r = s.beaten(r, run.BeatChange{Token: new("token 3"), Generation: 3})
	s.wantBeat(r.Ref(), want)
	want.Cancel = new("why")
	r = s.beaten(r, run.BeatChange{Cancel: new("why")})
	s.wantBeat(r.Ref(), want)
	// A heartbeat tells the wish, and leaves it.
	want.At = s.later()
	got, err := s.store.Beat(s.ctx, r.Ref(), run.Beat{Attempt: 1, WorkerID: "w", At: want.At})
	s.ok(err)
	s.same(want, got)
	want.Token, want.Generation = "", 4
	r = s.beaten(r, run.BeatChange{Token: new(""), Generation: 4})
	s.wantBeat(r.Ref(), want)
}

func beatIsJudged(s *storeTest) {
	r := s.create(sample("acme", "run-1"))
	other := s.create(sample("acme", "run-2"))
	opened := s.worker("w")
	judge := func(at time.Time) error {
		w := s.decide(r, run.Asked{})
		w.Beat = run.BeatChange{Judged: at, Close: true}
		err := s.store.Commit(s.ctx, w, s.decide(other, run.Asked{}))
		if conflict, ok := asConflict(err); isConflict(err) && (!ok || conflict.Ref != r.Ref()) {
			s.Fatalf("the conflict is not one of the run: %v", err)
		}
		return err
	}
	if err := judge(opened.At); !isConflict(err) {
		s.Fatalf("a verdict where nothing is open: %v; want a conflict", err)
	}
	r = s.beaten(r, run.BeatChange{Open: &opened})
	heard := opened
	heard.At = s.later()
	_, err := s.store.Beat(s.ctx, r.Ref(), heard)
	s.ok(err)
	if err := judge(opened.At); !isConflict(err) {
		s.Fatalf("a verdict on a heartbeat that is not the last: %v; want a conflict", err)
	}
	// Nothing of the commit was applied.
	s.wantBeat(r.Ref(), heard)
	s.wantRun(r)
	s.wantRun(other)
	s.ok(judge(heard.At))
	s.wantNoBeat(r.Ref())
	if _, err := s.store.Beat(s.ctx, r.Ref(), heard); !isNotFound(err) {
		s.Fatalf("a heartbeat after the verdict: %v; want ErrNotFound", err)
	}
}

// beatRace has a worker call while a verdict falls: one of the two is first, and
// the other learns it.
func beatRace(s *storeTest) {
	for i := range 20 {
		r := s.create(sample("acme", fmt.Sprint("run-", i)))
		opened := s.worker("w")
		r = s.beaten(r, run.BeatChange{Open: &opened})
		verdict := s.decide(r, run.Asked{})
		verdict.Beat = run.BeatChange{Judged: opened.At, Close: true}
		heartbeat := run.Beat{Attempt: 1, WorkerID: "w", At: s.later()}
		var judged, heard error
		var both sync.WaitGroup
		both.Go(func() { judged = s.store.Commit(s.ctx, verdict) })
		both.Go(func() { _, heard = s.store.Beat(s.ctx, r.Ref(), heartbeat) })
		both.Wait()
		switch {
		case judged == nil && isNotFound(heard):
			s.wantNoBeat(r.Ref())
		case isConflict(judged) && heard == nil:
			opened.At = heartbeat.At
			s.wantBeat(r.Ref(), opened)
		default:
			s.Fatalf("the verdict: %v, the heartbeat: %v; want one of the two", judged, heard)
		}
	}
}

// manyBeats has a worker call many times at once; the newest is kept.
func manyBeats(s *storeTest) {
	r := s.create(sample("acme", "run-1"))
	opened := s.worker("w")
	r = s.beaten(r, run.BeatChange{Open: &opened})
	const calls = 50
	failed := make(chan error, calls)
	for i := range calls {
		go func() {
			_, err := s.store.Beat(s.ctx, r.Ref(), run.Beat{
				Attempt: 1, WorkerID: "w", At: opened.At.Add(time.Duration(i) * time.Second),
			})
			failed <- err
		}()
	}
	for range calls {
		s.ok(<-failed)
	}
	opened.At = opened.At.Add((calls - 1) * time.Second)
	s.wantBeat(r.Ref(), opened)
	s.wantRun(r)
}

func beatOfAPurgedRun(s *storeTest) {
	r := s.create(shortLived("acme", "run-1"))
	opened := s.worker("w")
	r = s.beaten(r, run.BeatChange{Open: &opened})
	r = s.apply(r, cancel())
	for {
		n, err := s.store.Purge(s.ctx, r.ExpiresAt.Add(time.Second), 10)
		s.ok(err)
		if n == 0 {
			break
		}
	}
	again := s.create(sample("acme", "run-1"))
	s.wantNoBeat(again.Ref())
}

func receptionIsNoted(s *storeTest) {
	got, err := s.store.Reception(s.ctx)
	s.ok(err)
	s.same(orchestrator.Reception{}, got)
	for range 2 {
		want := orchestrator.Reception{Since: s.later(), ProbedAt: s.later()}
		s.ok(s.store.NoteReception(s.ctx, want))
		got, err = s.store.Reception(s.ctx)
		s.ok(err)
		s.same(want, got)
	}
	want := orchestrator.Reception{ProbedAt: s.later()}
	s.ok(s.store.NoteReception(s.ctx, want))
	got, err = s.store.Reception(s.ctx)
	s.ok(err)
	s.same(want, got)
}
