package porttest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/job"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// sampleJob returns a job that can be created.
func (s *storeTest) sampleJob(tenant, id string) job.Job {
	now := s.later()
	return job.Job{
		Tenant: tenant, ID: id, Version: 1, CreatedAt: now, UpdatedAt: now, UpdatedBy: "token:abc123", Since: now,
		NextAt: now.Add(time.Hour), WakeAt: now.Add(time.Hour + time.Second),
		Definition: job.Definition{
			Name: "Näme of <" + id + ">", Image: "jobs:latest", Command: []string{"report", "--all"}, Schedule: "0 2 * * *", TimeZone: "Europe/Berlin",
		},
	}
}

// save stores the job and returns the stored record.
func (s *storeTest) save(j job.Job) job.Job {
	s.Helper()
	s.ok(s.store.SaveJob(s.ctx, j))
	j.Revision++
	return j
}

// wantJob checks that the store returns exactly this record.
func (s *storeTest) wantJob(want job.Job) {
	s.Helper()
	got, err := s.store.LoadJob(s.ctx, want.Tenant, want.ID)
	s.ok(err)
	s.same(want, got)
}

func (s *storeTest) wantNoJob(tenant, id string) {
	s.Helper()
	if got, err := s.store.LoadJob(s.ctx, tenant, id); !isNotFound(err) {
		s.Fatalf("job %s of %q: got %+v, %v; want ErrNotFound", id, tenant, got, err)
	}
}

func (s *storeTest) wantJobConflict(err error) {
	s.Helper()
	if _, ofRun := asConflict(err); !isConflict(err) || ofRun {
		s.Fatalf("got %v, want ErrConflict about no run", err)
	}
}

// firing returns the write that creates a firing of the job.
func (s *storeTest) firing(j job.Job, at time.Time) port.Write {
	r := sample(j.Tenant, run.FiringID(j.ID, at))
	r.JobID, r.JobVersion, r.Trigger, r.ScheduledAt = j.ID, j.Version, run.TriggerSchedule, at
	return port.WriteOf(run.New(r, s.later()))
}

// ofJob creates a run of the job.
func (s *storeTest) ofJob(tenant, jobID, id string) run.Run {
	s.Helper()
	r := sample(tenant, id)
	r.JobID, r.JobVersion, r.Trigger = jobID, 1, run.TriggerManual
	return s.create(r)
}

func jobIsReadBack(s *storeTest) {
	s.wantNoJob("acme", "nightly")
	j := s.save(s.sampleJob("acme", "nightly"))
	s.wantJob(j)
	s.wantNoJob("zenith", "nightly")
	s.wantNoJob("acme", "night")
	again := s.sampleJob("acme", "nightly")
	s.wantJobConflict(s.store.SaveJob(s.ctx, again))
	for range 3 {
		stale := j
		j.Paused, j.PausedAt, j.NextAt, j.WakeAt = !j.Paused, s.later(), time.Time{}, time.Time{}
		j = s.save(j)
		s.wantJob(j)
		s.wantJobConflict(s.store.SaveJob(s.ctx, stale))
	}
	ahead := j
	ahead.Revision++
	s.wantJobConflict(s.store.SaveJob(s.ctx, ahead))
	unknown := s.sampleJob("acme", "unknown")
	unknown.Revision = 1
	s.wantJobConflict(s.store.SaveJob(s.ctx, unknown))
	s.wantNoJob("acme", "unknown")
	s.wantJob(j)
}

func jobVersionsAreKept(s *storeTest) {
	j := s.save(s.sampleJob("acme", "nightly"))
	s.save(s.sampleJob("zenith", "nightly"))
	var want []job.Job
	for i := range 12 {
		j.WakeAt = s.later()
		j = s.save(j) // a commit without a change of the definition
		want = append(want, j)
		j.Version++
		j.Definition.Name = fmt.Sprint("change ", i)
		j.UpdatedAt = s.later()
		j = s.save(j)
	}
	want = append(want, j)
	for _, each := range want {
		got, err := s.store.JobVersion(s.ctx, "acme", "nightly", each.Version)
		s.ok(err)
		s.same(each, got)
	}
	s.wantNoVersion("acme", "nightly", 0)
	s.wantNoVersion("acme", "nightly", j.Version+1)
	s.wantNoVersion("acme", "unknown", 1)
	s.wantNoVersion("zenith", "nightly", 2)
}

func (s *storeTest) wantNoVersion(tenant, id string, version int64) {
	s.Helper()
	if got, err := s.store.JobVersion(s.ctx, tenant, id, version); !isNotFound(err) {
		s.Fatalf("version %d of %s: got %+v, %v; want ErrNotFound", version, id, got, err)
	}
}

func deletedJobIsGone(s *storeTest) {
	first := s.save(s.sampleJob("acme", "nightly"))
	changed := first
	changed.Version++
	changed = s.save(changed)
	r := s.apply(s.ofJob("acme", "nightly", "nightly:1"), cancel())
	s.wantJobConflict(s.store.DeleteJob(s.ctx, first))
	s.wantJob(changed)
	s.ok(s.store.DeleteJob(s.ctx, changed))
	s.wantNoJob("acme", "nightly")
	s.wantNoVersion("acme", "nightly", 1)
	s.wantNoResult("nightly")
	s.wantRun(r)
	s.wantJobConflict(s.store.DeleteJob(s.ctx, changed))
	s.wantJobConflict(s.store.SaveJob(s.ctx, changed))
	s.wantJobConflict(s.store.FireJob(s.ctx, changed, s.firing(changed, s.now)))
	s.wantNoJob("acme", "nightly")
	// Another job with the same id has no commits and versions of the first, even on
	// the same revision.
	again := s.save(s.sampleJob("acme", "nightly"))
	s.wantJobConflict(s.store.SaveJob(s.ctx, first))
	s.wantJobConflict(s.store.DeleteJob(s.ctx, first))
	s.wantJobConflict(s.store.FireJob(s.ctx, first, s.firing(first, s.now)))
	s.wantJob(again)
	again.Version = 5
	s.save(again)
	s.wantNoVersion("acme", "nightly", 2)
	s.wantNoResult("nightly")
}

func jobsInPages(s *storeTest) {
	var want []string
	for i := range 23 {
		id := fmt.Sprintf("job-%02d", (i*7)%23)
		s.save(s.sampleJob("acme", id))
		want = append(want, id)
	}
	slices.Sort(want)
	s.save(s.sampleJob("zenith", "job-00b"))
	for _, limit := range []int{1, 2, 7, 22, 23, 24} {
		var got []string
		page := port.Page{Limit: limit}
		for range 24 {
			jobs, next, err := s.store.Jobs(s.ctx, "acme", page)
			s.ok(err)
			if len(jobs) > limit {
				s.Fatalf("page of %d: got %d jobs", limit, len(jobs))
			}
			for _, j := range jobs {
				s.wantJob(j)
				got = append(got, j.ID)
			}
			if page.Cursor = next; next == "" {
				break
			}
		}
		s.same(want, got)
	}
	_, cursor, err := s.store.Jobs(s.ctx, "acme", port.Page{Limit: 1})
	s.ok(err)
	for _, bad := range []string{"x", cursor[1:], cursor + "A", cursor + "\n", strings.Repeat("A", len(cursor))} {
		if _, _, err := s.store.Jobs(s.ctx, "acme", port.Page{Cursor: bad, Limit: 1}); !isInvalid(err, "cursor") {
			s.Fatalf("cursor %q: got %v, want a fault of field cursor", bad, err)
		}
	}
	if _, _, err := s.store.Jobs(s.ctx, "zenith", port.Page{Cursor: cursor, Limit: 1}); !isInvalid(err, "cursor") {
		s.Errorf("cursor of another tenant: got %v", err)
	}
	if _, _, err := s.store.List(s.ctx, "acme", port.Page{Cursor: cursor, Limit: 1}); !isInvalid(err, "cursor") {
		s.Errorf("cursor of another list: got %v", err)
	}
	for _, limit := range []int{-1, 0, 1001} {
		if _, _, err := s.store.Jobs(s.ctx, "acme", port.Page{Limit: limit}); !isInvalid(err, "limit") {
			s.Errorf("limit %d: got %v", limit, err)
		}
	}
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
	due := func(now time.Time, limit int) (ids []string) {
		s.Helper()
		after := ""
		for range 100 {
			refs, next, err := s.store.JobsDue(s.ctx, now, after, limit)
			s.ok(err)
			if len(refs) > limit {
				s.Fatalf("limit %d: got %d jobs", limit, len(refs))
			}
			for _, ref := range refs {
				ids = append(ids, ref.ID)
			}
			if after = next; next == "" {
				return ids
			}
		}
		s.Fatal("got a place after 100 pages, want the end")
		return nil
	}
	for _, limit := range []int{1, 2, 9, 10} {
		s.same(want[:5], due(start.Add(4*time.Minute+2*time.Second), limit))
		s.same(want, due(start.Add(time.Hour), limit))
	}
	if got := due(start.Add(-2*time.Second), 10); len(got) != 0 {
		s.Errorf("before the first: got %v", got)
	}
	// A changed job is due at its new time only, a deleted one never.
	first, err := s.store.LoadJob(s.ctx, "acme", want[0])
	s.ok(err)
	first.NextAt, first.WakeAt = start.Add(2*time.Hour), start.Add(2*time.Hour)
	first = s.save(first)
	s.same(want[1:], due(start.Add(time.Hour), 10))
	s.same(append(slices.Clone(want[1:]), want[0]), due(start.Add(3*time.Hour), 10))
	s.ok(s.store.DeleteJob(s.ctx, first))
	s.same(want[1:], due(start.Add(3*time.Hour), 10))
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
	// The same firings again: the job has changed.
	again := j
	fresh := s.firing(j, s.now.Add(5*time.Hour))
	s.wantJobConflict(s.store.FireJob(s.ctx, again, append(slices.Clone(writes[:3]), fresh)...))
	s.wantNone(fresh.Run.Ref())
	s.wantJob(next)
	// Only the id of a run exists.
	err := s.store.FireJob(s.ctx, next, fresh, writes[1])
	if conflict, ok := asConflict(err); !ok || conflict.Ref != writes[1].Run.Ref() {
		s.Fatalf("got %v, want a *Conflict of %s", err, writes[1].Run.ID)
	}
	s.wantNone(fresh.Run.Ref())
	s.wantJob(next)
	s.ok(s.store.FireJob(s.ctx, next, fresh))
	s.wantRun(after(fresh))
	// A changed definition is kept by a firing too, and a job may fire without runs.
	next.Revision++
	next.Version++
	s.ok(s.store.FireJob(s.ctx, next))
	next.Revision++
	s.wantJob(next)
	if old, err := s.store.JobVersion(s.ctx, "acme", "nightly", 1); err != nil || old.Revision != next.Revision-1 {
		s.Errorf("got version 1 %+v, %v", old, err)
	}
}

// firingRace fires the same job concurrently: one of the calls wins.
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

func runsOfAJob(s *storeTest) {
	start := s.now
	var want, ended []string
	for i := range 17 {
		s.now = start.Add(time.Duration(i/3) * time.Second) // three with the same creation time
		r := s.ofJob("acme", "nightly", fmt.Sprintf("nightly:%02d", i))
		s.create(sample("acme", fmt.Sprint("export-", i)))
		s.ofJob("acme", "night", fmt.Sprintf("night:%02d", i))
		s.ofJob("zenith", "nightly", fmt.Sprintf("nightly:%02d", i))
		want = append(want, r.ID)
		if i%4 == 0 {
			s.apply(r, cancel())
			ended = append(ended, r.ID)
		}
	}
	for _, limit := range []int{1, 5, 16, 17, 1000} {
		for _, row := range []struct {
			state run.State
			want  []string
		}{{"", want}, {run.Cancelled, ended}, {run.Running, nil}} {
			got := s.pages("acme", port.Page{JobID: "nightly", State: row.state, Limit: limit}, func() {})
			slices.Sort(got)
			s.same(row.want, got)
		}
	}
	runs, cursor, err := s.store.List(s.ctx, "acme", port.Page{JobID: "nightly", Limit: 5})
	s.ok(err)
	if !slices.IsSortedFunc(runs, func(a, b run.Run) int { return b.CreatedAt.Compare(a.CreatedAt) }) {
		s.Errorf("got %v, want the newest first", idsOf(runs))
	}
	for name, page := range map[string]port.Page{
		"all runs": {}, "another job": {JobID: "night"}, "another state": {JobID: "nightly", State: run.Pending},
	} {
		page.Cursor, page.Limit = cursor, 5
		if _, _, err := s.store.List(s.ctx, "acme", page); !isInvalid(err, "cursor") {
			s.Errorf("cursor of another list, %s: got %v", name, err)
		}
	}
	if got := s.pages("acme", port.Page{JobID: "unknown", Limit: 5}, func() {}); len(got) != 0 {
		s.Errorf("unknown job: got %v", got)
	}
}
