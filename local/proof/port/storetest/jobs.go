package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fan"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// sampleJob returns a valid new job.
func (s *storeTest) sampleJob(tenant, id string) job.Job {
	now := s.later()
	return job.Job{
		Tenant: tenant, ID: id, Version: 1, CreatedAt: now, UpdatedAt: now, UpdatedBy: "token:abc123", Since: now,
		NextAt: now.Add(time.Hour), WakeAt: now.Add(time.Hour + time.Second),
		Definition: job.Definition{
			Name: "Näme of <" + id + ">", Labels: map[string]string{"example.org/tier": "1"}, Image: "jobs:latest", Command: []string{"report", "--all"}, Schedule: "0 2 * * *", TimeZone: "Europe/Berlin",
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

// ofJob creates a run of the job and returns the stored record.
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
	// A later job with the same ID has no versions of the first one. A commit that is based on
	// the first one conflicts, even with the same revision.
	next := s.sampleJob("acme", "nightly")
	next.Version = changed.Version + 1
	again := s.save(next)
	s.wantJobConflict(s.store.SaveJob(s.ctx, first))
	s.wantJobConflict(s.store.DeleteJob(s.ctx, first))
	s.wantJobConflict(s.store.FireJob(s.ctx, first, s.firing(first, s.now)))
	s.wantJob(again)
	again.Version = 5
	s.save(again)
	s.wantNoVersion("acme", "nightly", 2)
	s.wantNoResult("nightly")
}

// versionsGoOn deletes jobs with the same ID. A later job with the ID must not reuse their
// versions.
func versionsGoOn(s *storeTest) {
	want := func(version int64) {
		s.Helper()
		if got, err := s.store.DeletedVersion(s.ctx, "acme", "nightly"); err != nil || got != version {
			s.Fatalf("got the deleted version %d, %v, want %d", got, err, version)
		}
	}
	last := int64(0)
	for range 3 {
		want(last)
		j := s.sampleJob("acme", "nightly")
		for version := range last + 1 {
			if j.Version = version; version > 0 {
				s.wantJobConflict(s.store.SaveJob(s.ctx, j))
			}
		}
		s.wantNoJob("acme", "nightly")
		j.Version = last + 1
		stale := s.save(j)
		want(last)
		j = stale
		j.Version++
		j = s.save(j)
		s.wantJobConflict(s.store.DeleteJob(s.ctx, stale))
		want(last)
		s.ok(s.store.DeleteJob(s.ctx, j))
		last = j.Version
	}
	want(last)
	s.save(s.sampleJob("acme", "night"))
	s.save(s.sampleJob("zenith", "nightly"))
	for _, ref := range []job.Ref{{Tenant: "zenith", ID: "nightly"}, {Tenant: "acme", ID: "night"}} {
		if got, err := s.store.DeletedVersion(s.ctx, ref.Tenant, ref.ID); err != nil || got != 0 {
			s.Errorf("%v: got the deleted version %d, %v, want 0", ref, got, err)
		}
	}
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
	s.wantIDsInPages(want, func(tenant string, page port.Page) (ids []string, next string, err error) {
		jobs, next, err := s.store.Jobs(s.ctx, tenant, page)
		for _, j := range jobs {
			s.wantJob(j)
			ids = append(ids, j.ID)
		}
		return ids, next, err
	})
}

// wantIDsInPages checks a list of acme's 23 IDs with several page sizes, and the cursors.
func (s *storeTest) wantIDsInPages(want []string, read func(tenant string, page port.Page) (ids []string, next string, err error)) {
	s.Helper()
	for _, limit := range []int{1, 2, 7, 22, 23, 24} {
		var got []string
		page := port.Page{Limit: limit}
		for range len(want) + 1 {
			ids, next, err := read("acme", page)
			s.ok(err)
			if len(ids) > limit {
				s.Fatalf("page of %d: got %d ids", limit, len(ids))
			}
			got = append(got, ids...)
			if page.Cursor = next; next == "" {
				break
			}
		}
		s.same(want, got)
	}
	_, cursor, err := read("acme", port.Page{Limit: 1})
	s.ok(err)
	for _, bad := range []string{"x", cursor[1:], cursor + "A", cursor + "\n", strings.Repeat("A", len(cursor))} {
		if _, _, err := read("acme", port.Page{Cursor: bad, Limit: 1}); !isInvalid(err, "cursor") {
			s.Fatalf("cursor %q: got %v, want a fault of field cursor", bad, err)
		}
	}
	if _, _, err := read("zenith", port.Page{Cursor: cursor, Limit: 1}); !isInvalid(err, "cursor") {
		s.Errorf("cursor of another tenant: got %v", err)
	}
	if _, _, err := s.store.List(s.ctx, "acme", port.Page{Cursor: cursor, Limit: 1}); !isInvalid(err, "cursor") {
		s.Errorf("cursor of another list: got %v", err)
	}
	for _, limit := range []int{-1, 0, 1001} {
		if _, _, err := read("acme", port.Page{Limit: limit}); !isInvalid(err, "limit") {
			s.Errorf("limit %d: got %v", limit, err)
		}
	}
}

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
	s.childrenApart(want, ended)
}

// childrenApart lists the runs of a job that has many children since, and the children.
func (s *storeTest) childrenApart(want, ended []string) {
	var children, cancelled []string
	for i := range 30 {
		r := sample("acme", fmt.Sprintf("nightly:16.%d", i))
		r.JobID, r.JobVersion, r.Child = "nightly", 1, &fan.Child{Parent: "nightly:16", Number: i}
		r = s.create(r)
		children = append(children, r.ID)
		if i%3 == 0 {
			s.apply(r, cancel())
			cancelled = append(cancelled, r.ID)
		}
	}
	for _, row := range []struct {
		page port.Page
		want []string
	}{
		{port.Page{JobID: "nightly"}, want},
		{port.Page{JobID: "nightly", State: run.Cancelled}, ended},
		{port.Page{JobID: "nightly", Children: true}, children},
		{port.Page{JobID: "nightly", Children: true, State: run.Cancelled}, cancelled},
		{port.Page{JobID: "night", Children: true}, nil},
	} {
		row.page.Limit = 7
		got := s.pages("acme", row.page, func() {})
		slices.Sort(got)
		slices.Sort(row.want)
		s.same(row.want, got)
	}
	_, cursor, err := s.store.List(s.ctx, "acme", port.Page{JobID: "nightly", Limit: 5})
	s.ok(err)
	if _, _, err := s.store.List(s.ctx, "acme", port.Page{JobID: "nightly", Children: true, Limit: 5, Cursor: cursor}); !isInvalid(err, "cursor") {
		s.Errorf("cursor of the runs for the children: got %v", err)
	}
}
