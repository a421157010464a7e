package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// firing returns the write that creates a run of the job for a time of its schedule.
func (s *storeTest) firing(j job.Job, at time.Time) port.Write {
	r := sample(j.Tenant, run.FiringID(j.ID, at))
	r.JobID, r.JobVersion, r.Trigger, r.ScheduledAt = j.ID, j.Version, run.TriggerSchedule, at
	return port.WriteOf(run.New(r, s.later()))
}

func jobsAreDue(s *storeTest) {
	start := s.now
	var want []string
	for i := range 9 {
		j := s.sampleJob([]string{"acme", "zenith"}[i%2], fmt.Sprint("job-", 9-i))
		j.NextAt = start.Add(time.Duration(i) * time.Minute)
		j.WakeAt = j.NextAt
		s.save(j)
		want = append(want, j.ID)
	}
	never := s.sampleJob("acme", "never")
	never.NextAt, never.WakeAt = time.Time{}, time.Time{}
	s.save(never)
	due := duePages(s, s.store.JobsDue, func(ref job.Ref) string { return ref.ID })
	s.wantDue(want, start, due)
	// A changed job is due only at its new time. A deleted job is never due.
	first, err := s.store.LoadJob(s.ctx, "acme", want[0])
	s.ok(err)
	first.NextAt, first.WakeAt = start.Add(2*time.Hour), start.Add(2*time.Hour)
	first = s.save(first)
	s.same(want[1:], due(start.Add(time.Hour), 10))
	s.same(append(slices.Clone(want[1:]), want[0]), due(start.Add(3*time.Hour), 10))
	s.ok(s.store.DeleteJob(s.ctx, first))
	s.same(want[1:], due(start.Add(3*time.Hour), 10))
}

// wantDue checks which of the IDs are due. The first is due at start and each next one a minute
// later.
func (s *storeTest) wantDue(want []string, start time.Time, due func(now time.Time, limit int) []string) {
	s.Helper()
	for _, limit := range []int{1, 2, len(want), len(want) + 1} {
		s.same(want[:5], due(start.Add(4*time.Minute+2*time.Second), limit))
		s.same(want, due(start.Add(time.Hour), limit))
	}
	if got := due(start.Add(-2*time.Second), 10); len(got) != 0 {
		s.Errorf("before the first: got %v", got)
	}
}

// duePages returns a function that reads all pages of a list of due records and returns the
// IDs.
func duePages[R any](
	s *storeTest, read func(ctx context.Context, now time.Time, after string, limit int) ([]R, string, error), id func(R) string,
) func(now time.Time, limit int) []string {
	return func(now time.Time, limit int) (ids []string) {
		s.Helper()
		after := ""
		for range 100 {
			refs, next, err := read(s.ctx, now, after, limit)
			s.ok(err)
			if len(refs) > limit {
				s.Fatalf("limit %d: got %d ids", limit, len(refs))
			}
			for _, ref := range refs {
				ids = append(ids, id(ref))
			}
			if after = next; next == "" {
				return ids
			}
		}
		s.Fatal("got a place after 100 pages, want the end")
		return nil
	}
}

func firingIsAtomic(s *storeTest) {
	j := s.save(s.sampleJob("acme", "nightly"))
	next := j
	next.NextAt, next.WakeAt = s.now.Add(2*time.Hour), s.now.Add(2*time.Hour)
	var writes []port.Write
	for i := range port.MaxFirings {
		writes = append(writes, s.firing(j, j.NextAt.Add(time.Duration(i)*time.Minute)))
	}
	s.ok(s.store.FireJob(s.ctx, next, writes...))
	next.Revision++
	s.wantJob(next)
	for _, w := range writes {
		s.wantRun(after(w))
		found, err := s.store.Find(s.ctx, "acme", w.Run.TaskID)
		s.ok(err)
		s.same(after(w), found)
		s.same(w.Run.EventCount, len(s.events(w.Run.Ref())))
	}
	// The same firings again fail, because the job has changed.
	again := j
	fresh := s.firing(j, s.now.Add(5*time.Hour))
	s.wantJobConflict(s.store.FireJob(s.ctx, again, append(slices.Clone(writes[:3]), fresh)...))
	s.wantNone(fresh.Run.Ref())
	s.wantJob(next)
	// The job is current, but one of the runs exists.
	err := s.store.FireJob(s.ctx, next, fresh, writes[1])
	if conflict, ok := asConflict(err); !ok || conflict.Ref != writes[1].Run.Ref() {
		s.Fatalf("got %v, want a *Conflict of %s", err, writes[1].Run.ID)
	}
	s.wantNone(fresh.Run.Ref())
	s.wantJob(next)
	s.ok(s.store.FireJob(s.ctx, next, fresh))
	s.wantRun(after(fresh))
	// A firing also stores a changed definition. A job may fire without runs.
	next.Revision++
	next.Version++
	s.ok(s.store.FireJob(s.ctx, next))
	next.Revision++
	s.wantJob(next)
	if old, err := s.store.JobVersion(s.ctx, "acme", "nightly", 1); err != nil || old.Revision != next.Revision-1 {
		s.Errorf("got version 1 %+v, %v", old, err)
	}
}

// firingRace fires the same job concurrently. One of the calls must win.
func firingRace(s *storeTest) {
	const callers = 8
	j := s.save(s.sampleJob("acme", "nightly"))
	w := s.firing(j, j.NextAt)
	next := j
	next.NextAt, next.WakeAt = time.Time{}, time.Time{}
	results := make(chan error, callers+1)
	for range callers {
		go func() { results <- s.store.FireJob(s.ctx, next, w) }()
	}
	go func() {
		err := s.store.DeleteJob(s.ctx, j)
		if err == nil {
			err = errDeleted
		}
		results <- err
	}()
	fired, deleted := 0, 0
	for range callers + 1 {
		switch err := <-results; {
		case err == nil:
			fired++
		case errors.Is(err, errDeleted):
			deleted++
		default:
			s.wantJobConflict(err)
		}
	}
	if fired+deleted != 1 {
		s.Fatalf("got %d firings and %d deletions, want one of the two", fired, deleted)
	}
	if deleted == 1 {
		s.wantNone(w.Run.Ref())
		return
	}
	s.wantRun(after(w))
	next.Revision++
	s.wantJob(next)
}

var errDeleted = errors.New("deleted")
