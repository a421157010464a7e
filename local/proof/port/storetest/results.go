package storetest

import (
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

func (s *storeTest) wantNoResult(jobID string) {
	s.Helper()
	if got, err := s.store.LastResult(s.ctx, "acme", jobID); !isNotFound(err) {
		s.Fatalf("got result %+v, %v; want ErrNotFound", got, err)
	}
}

func (s *storeTest) wantResult(of run.Run) {
	s.Helper()
	want, ok := of.Result()
	if !ok {
		s.Fatalf("run %s in %s has no result", of.ID, of.State)
	}
	got, err := s.store.LastResult(s.ctx, of.Tenant, of.JobID)
	s.ok(err)
	s.same(want, got)
}

// succeed applies the facts from a new run to Completed.
func (s *storeTest) succeed(r run.Run) run.Run {
	s.Helper()
	return s.apply(s.apply(s.apply(r, admitted("default", 0)), startFacts("m")...), successFacts()...)
}

func lastResultIsKept(s *storeTest) {
	s.save(s.sampleJob("acme", "nightly"))
	s.wantNoResult("nightly")
	success := s.succeed(s.ofJob("acme", "nightly", "one"))
	s.wantResult(success)
	failed := s.apply(s.ofJob("acme", "nightly", "two"), cancel())
	s.wantResult(failed)
	// Later commits of an ended run do not change the result, and neither do runs of other jobs
	// and tenants, runs without a job, and skipped runs.
	s.apply(success, run.OutputExpiring{Message: "downloaded"})
	s.wantResult(failed)
	s.apply(s.ofJob("acme", "night", "three"), cancel())
	s.apply(s.ofJob("zenith", "nightly", "four"), cancel())
	s.apply(s.create(sample("acme", "five")), cancel())
	skipped := s.decide(s.ofJob("acme", "nightly", "six"), cancel())
	skipped.Run.Skipped = true
	s.ok(s.store.Commit(s.ctx, skipped))
	s.wantResult(failed)
	s.wantNoResult("night")
	// The result is of the run that ended last, not of the last commit.
	late := s.decide(s.ofJob("acme", "nightly", "seven"), cancel())
	latest := s.apply(s.ofJob("acme", "nightly", "eight"), cancel())
	s.ok(s.store.Commit(s.ctx, late))
	s.wantResult(latest)
	s.ok(s.store.Commit(s.ctx, s.decide(after(late), run.ExecutionChecked{Done: true})))
	s.wantResult(latest)
}

func lastResultOutlivesRuns(s *storeTest) {
	j := s.save(s.sampleJob("acme", "nightly"))
	r := shortLived("acme", "short")
	r.JobID = "nightly"
	ended := s.apply(s.create(r), cancel())
	if n, err := s.store.Purge(s.ctx, ended.ExpiresAt.Add(time.Hour), 10); err != nil || n != 1 {
		s.Fatalf("got %d purged, %v; want 1", n, err)
	}
	s.wantResult(ended)
	j.Version++
	s.wantResult(ended)
	s.save(j)
	s.wantResult(ended)
	// A run that ends after its job was deleted stores no result. A later commit of an ended
	// run stores none either.
	success := s.succeed(s.ofJob("acme", "nightly", "success"))
	orphan, later := s.ofJob("acme", "nightly", "orphan"), s.ofJob("acme", "nightly", "later")
	j.Revision++
	s.ok(s.store.DeleteJob(s.ctx, j))
	s.wantNoResult("nightly")
	s.wantRun(s.apply(orphan, cancel()))
	// The same applies after another job has got the ID.
	again := s.sampleJob("acme", "nightly")
	again.Version = j.Version + 1
	s.save(again)
	s.wantNoResult("nightly")
	s.apply(success, run.OutputExpiring{Message: "downloaded"})
	s.wantNoResult("nightly")
	s.wantRun(s.apply(later, cancel()))
	s.wantNoResult("nightly")
	own := sample("acme", "own")
	own.JobID, own.JobVersion, own.Trigger = "nightly", again.Version, run.TriggerManual
	s.wantResult(s.apply(s.create(own), cancel()))
}

// resultRace ends runs of one job concurrently, each with a different end time.
func resultRace(s *storeTest) {
	s.save(s.sampleJob("acme", "nightly"))
	const runs = 12
	writes := make([]port.Write, runs)
	for i := range writes {
		writes[i] = s.decide(s.ofJob("acme", "nightly", fmt.Sprint("run-", i)), cancel())
	}
	ended := make(chan error, runs)
	for _, w := range writes {
		go func() { ended <- s.store.Commit(s.ctx, w) }()
	}
	for range writes {
		s.ok(<-ended)
	}
	for _, w := range writes {
		s.wantRun(after(w))
	}
	s.wantResult(after(writes[runs-1]))
}
