package runs_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// createJob stores a job and sets its wake-up.
func (h *fixture) createJob(id, more string) job.Ref {
	h.Helper()
	d, problems := job.Parse([]byte("id: "+id+"\nimage: worker\n"+more), nil)
	if len(problems) > 0 {
		h.Fatal(problems)
	}
	deleted, err := h.store.DeletedVersion(h.Context(), client.Tenant, id)
	h.ok(err)
	j := job.Create(client.Tenant, d, "me", h.clock.now).After(deleted)
	h.ok(h.store.SaveJob(h.Context(), j))
	h.ok(h.service.Wake(h.Context(), j))
	return j.Ref()
}

// wake moves the clock to the next wake-up of the job and delivers it.
func (h *fixture) wake(ref job.Ref) {
	h.Helper()
	h.clock.to(h.schedules.WakeUp(ref))
	h.fire(ref)
}

func (h *fixture) fire(ref job.Ref) {
	h.Helper()
	h.ok(h.service.Fire(h.Context(), ref))
	h.step()
}

// changeJob commits a change of the stored job and sets its wake-up.
func (h *fixture) changeJob(ref job.Ref, change func(job.Job) job.Job) {
	h.Helper()
	j, err := h.store.LoadJob(h.Context(), ref.Tenant, ref.ID)
	h.ok(err)
	j = change(j)
	h.ok(h.store.SaveJob(h.Context(), j))
	h.ok(h.service.Wake(h.Context(), j))
}

// runsOf returns the runs of a job, oldest first: their times, triggers and spans.
func (h *fixture) runsOf(ref job.Ref) []string {
	h.Helper()
	runs, _, err := h.store.List(h.Context(), ref.Tenant, port.Page{JobID: ref.ID, Limit: 1000})
	h.ok(err)
	var lines []string
	for _, r := range runs {
		line := fmt.Sprintf("%s %s %s", r.ScheduledAt.Sub(epoch), r.Trigger, r.State)
		if r.Missed != nil {
			line += fmt.Sprintf(" %s x%d", r.Missed.Reason, r.Missed.Count)
		}
		lines = append(lines, line)
	}
	slices.Reverse(lines)
	return lines
}

func (h *fixture) wantRuns(ref job.Ref, want ...string) {
	h.Helper()
	if got := h.runsOf(ref); !slices.Equal(got, want) {
		h.Fatalf("got runs\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestScheduleStartsRuns(t *testing.T) {
	t.Parallel()
	h := setup(t)
	ref := h.createJob("nightly", "schedule: \"@every 10m\"\ninput: data\n")
	h.wantRuns(ref)
	h.clock.now = h.clock.now.Add(10*time.Minute - 1)
	h.fire(ref)
	h.wantRuns(ref)
	h.clock.now = h.clock.now.Add(time.Second + 1)
	h.fire(ref)
	h.fire(ref)
	h.wantRuns(ref, "10m0s schedule Running")
	r, err := h.store.Load(h.Context(), run.Ref{Tenant: client.Tenant, ID: run.FiringID("nightly", epoch.Add(10*time.Minute))})
	h.ok(err)
	if !r.FiredAt.Equal(h.clock.now) || r.JobVersion != 1 || r.Workspace != client.Workspace || r.CorrelationID != r.TaskID ||
		r.TaskID != run.FiringTaskID(r.Ref(), r.ScheduledAt) {
		t.Errorf("got run %+v, want one of version 1 that was fired now", r)
	}
	if input := r.Work.Program.Input; input == nil || input.Size != 4 {
		t.Errorf("got input %+v, want 4 bytes", input)
	}
	if at := h.schedules.WakeUp(ref); !at.Equal(epoch.Add(20 * time.Minute)) {
		t.Errorf("got next wake-up %s, want 20m after the start", at.Sub(epoch))
	}
	h.wake(ref)
	h.wantRuns(ref, "10m0s schedule Running", "20m0s schedule Running")
}

func TestOneShotLosesItsWakeUp(t *testing.T) {
	t.Parallel()
	h := setup(t)
	ref := h.createJob("once", "schedule: \"@at 2026-03-01T09:00:00Z\"\n")
	h.wake(ref)
	h.wantRuns(ref, "1h0m0s schedule Running")
	if at := h.schedules.WakeUp(ref); !at.IsZero() {
		t.Errorf("got wake-up %s, want none", at)
	}
}

func TestOutageIsCaughtUpInOrder(t *testing.T) {
	t.Parallel()
	h := setup(t)
	ref := h.createJob("minutely", "schedule: \"@every 1m\"\nconstraints: {catchUp: true, catchUpWindow: 30m}\n")
	h.clock.to(epoch.Add(time.Hour))
	h.fire(ref)
	want := []string{"1m0s schedule Completed catch_up_window x29"}
	got := h.runsOf(ref)
	if len(got) != 32 || got[0] != want[0] {
		t.Fatalf("got %d runs, the first one %s; want 32, %s", len(got), got[0], want[0])
	}
	for i, line := range got[1:] {
		trigger := "catch_up"
		if i == 30 {
			trigger = "schedule"
		}
		if prefix := fmt.Sprintf("%s %s ", time.Duration(30+i)*time.Minute, trigger); !strings.HasPrefix(line, prefix) {
			t.Errorf("got %s, want %s", line, prefix)
		}
	}
}

func TestManualRunIsTheFiring(t *testing.T) {
	t.Parallel()
	h := setup(t)
	ref := h.createJob("hourly", "schedule: \"@every 1h\"\n")
	for _, after := range []time.Duration{time.Hour, 3 * time.Hour} {
		at := epoch.Add(after)
		r := run.Run{
			Tenant: ref.Tenant, ID: run.FiringID(ref.ID, at), Workspace: client.Workspace, ScheduledAt: at, JobID: ref.ID, JobVersion: 1,
			Trigger: run.TriggerManual, Policy: h.config.Policy, Work: spec.Work{Kind: spec.KindJob, Program: &spec.Program{}},
		}
		r.TaskID = run.FiringTaskID(r.Ref(), at)
		_, err := h.store.Create(h.Context(), port.WriteOf(run.New(r, epoch)), nil)
		h.ok(err)
	}
	h.wake(ref)
	h.wantRuns(ref, "1h0m0s manual PreRun", "3h0m0s manual PreRun")
	h.clock.to(epoch.Add(5 * time.Hour))
	h.ok(h.service.Fire(h.Context(), ref))
	h.wantRuns(ref, "1h0m0s manual PreRun", "3h0m0s manual PreRun", "2h0m0s schedule Completed missed x3", "5h0m0s schedule Pending")
	if at := h.schedules.WakeUp(ref); !at.Equal(epoch.Add(6 * time.Hour)) {
		t.Errorf("got next wake-up %s, want 6h after the start", at.Sub(epoch))
	}
}

func TestPausedJobDoesNotFire(t *testing.T) {
	t.Parallel()
	h := setup(t)
	ref := h.createJob("minutely", "schedule: \"@every 1m\"\n")
	h.changeJob(ref, func(j job.Job) job.Job { return j.Pause(h.clock.now) })
	h.clock.to(epoch.Add(10 * time.Minute))
	h.fire(ref)
	h.sweep()
	h.wantRuns(ref)
	h.changeJob(ref, func(j job.Job) job.Job { return j.Resume(h.clock.now) })
	h.fire(ref)
	h.wantRuns(ref)
	h.wake(ref)
	h.wantRuns(ref, "11m0s schedule Running")
}

func TestChangeFollowsTheFiringsThatAreDue(t *testing.T) {
	t.Parallel()
	const minutely = "image: worker\nschedule: \"@every 1m\"\n"
	for _, row := range []struct {
		name, constraints string
		change            func(h *fixture) error
		want              []string
	}{
		{"another schedule", "", func(h *fixture) error {
			_, _, err := h.service.Jobs.Put(h.Context(), client, "minutely", []byte("image: worker\nschedule: \"@every 2m\"\n"), change.Precondition{})
			return err
		}, []string{"1m0s schedule Pending"}},
		{"no schedule", "", func(h *fixture) error {
			_, err := h.service.Jobs.Patch(h.Context(), client, "minutely", []byte(`{"schedule":null}`), change.Precondition{})
			return err
		}, []string{"1m0s schedule Pending"}},
		{"pause", "", func(h *fixture) error {
			_, err := h.service.Jobs.Pause(h.Context(), client, "minutely", change.Precondition{})
			return err
		}, []string{"1m0s schedule Pending"}},
		{"pause of a job that catches up", "constraints: {catchUp: true}\n", func(h *fixture) error {
			_, err := h.service.Jobs.Pause(h.Context(), client, "minutely", change.Precondition{})
			return err
		}, []string{"1m0s schedule Pending"}},
		{"another image", "", func(h *fixture) error {
			_, err := h.service.Jobs.Patch(h.Context(), client, "minutely", []byte(`{"image":"other"}`), change.Precondition{})
			return err
		}, []string{"1m0s schedule Pending"}},
		{"the same image", "", func(h *fixture) error {
			_, err := h.service.Jobs.Patch(h.Context(), client, "minutely", []byte(`{"image":"worker"}`), change.Precondition{})
			return err
		}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			_, _, err := h.service.Jobs.Put(h.Context(), client, "minutely", []byte(minutely+row.constraints), change.Precondition{})
			h.ok(err)
			h.clock.to(epoch.Add(time.Minute)) // the wake-up is late
			h.ok(row.change(h))
			h.wantRuns(job.Ref{Tenant: client.Tenant, ID: "minutely"}, row.want...)
		})
	}
}

// TestSlowFiringDelaysNoChange changes a schedule that has due firings, and delays a part of
// firing them by a minute. If the webhook of onSkip is slow, the change does not wait for it.
// If the timer is slow, the firing of that minute is committed before the change.
func TestSlowFiringDelaysNoChange(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		slow    string
		changed time.Duration
		want    []string
	}{
		{"address of onSkip", 3*time.Minute + 10*time.Second, []string{"1m0s schedule Completed missed x2", "3m0s schedule Pending"}},
		{"timer", 4*time.Minute + 10*time.Second, []string{"1m0s schedule Completed missed x2", "3m0s schedule Pending", "4m0s schedule Pending"}},
	} {
		t.Run(row.slow, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			ref := h.createJob("minutely", "schedule: \"@every 1m\"\n"+skipActions)
			h.clock.to(epoch.Add(3*time.Minute + 10*time.Second))
			minute := func() { h.clock.to(h.clock.now.Add(time.Minute)) }
			if row.slow == "timer" {
				pass := sync.OnceFunc(minute)
				h.schedules = fake.NewSchedules(func(fake.Call) fake.Fate { pass(); return fake.Applied })
				h.service = h.system(wiring{})
			} else {
				h.hooks.notifying = minute
			}
			j, err := h.service.Jobs.Patch(h.Context(), client, ref.ID, []byte(`{"schedule":"@every 2m"}`), change.Precondition{})
			h.ok(err)
			if got := j.Since.Sub(epoch); got != row.changed || len(h.hooks.notified) != 1 {
				t.Errorf("the schedule counts from %s with webhooks %q, want %s and one webhook", got, h.hooks.notified, row.changed)
			}
			h.wantRuns(ref, row.want...)
		})
	}
}

func TestDeletedJobLosesItsWakeUp(t *testing.T) {
	t.Parallel()
	h := setup(t)
	ref := h.createJob("minutely", "schedule: \"@every 1m\"\n")
	j, err := h.store.LoadJob(h.Context(), ref.Tenant, ref.ID)
	h.ok(err)
	h.ok(h.store.DeleteJob(h.Context(), j))
	h.wake(ref)
	h.wantRuns(ref)
	if at := h.schedules.WakeUp(ref); !at.IsZero() {
		t.Errorf("got wake-up %s, want none", at)
	}
}

// TestLostWakeUpIsFound checks that a sweep fires an overdue job, and that one after a
// restart sets the wake-ups that were in memory.
func TestLostWakeUpIsFound(t *testing.T) {
	t.Parallel()
	h := setup(t)
	ref := h.createJob("hourly", "schedule: \"@every 1h\"\n")
	h.ok(h.schedules.Remove(h.Context(), ref))
	h.clock.to(epoch.Add(time.Hour + time.Minute))
	h.sweep()
	h.wantRuns(ref)
	h.clock.to(epoch.Add(time.Hour + 2*time.Minute))
	h.sweep()
	h.wantRuns(ref, "1h0m0s schedule Running")
	h.ok(h.schedules.Remove(h.Context(), ref))
	h.ok(h.service.Sweep(h.Context(), 365*24*time.Hour))
	if at := h.schedules.WakeUp(ref); !at.Equal(epoch.Add(2 * time.Hour)) {
		t.Errorf("got wake-up %s after a restart, want 2h after the start", at.Sub(epoch))
	}
	h.wantRuns(ref, "1h0m0s schedule Running")
}

// TestFailedTimerDelaysOneFiring checks that a failure after the commit fires nothing
// twice and loses nothing.
func TestFailedTimerDelaysOneFiring(t *testing.T) {
	t.Parallel()
	for _, fate := range []fake.Fate{fake.Lost, fake.Unsure} {
		h := setup(t)
		ref := h.createJob("minutely", "schedule: \"@every 1m\"\nmissed: all\n")
		down := fake.NewSchedules(fake.Script(fate))
		service := h.service
		h.schedules = down
		h.service = h.system(wiring{})
		h.clock.to(epoch.Add(time.Minute))
		if err := h.service.Fire(t.Context(), ref); err == nil {
			t.Error("got success, want the failure of the timer")
		}
		h.wantRuns(ref, "1m0s schedule Pending")
		h.service = service
		h.clock.to(epoch.Add(5 * time.Minute))
		h.sweep()
		if got := h.runsOf(ref); len(got) != 5 {
			t.Errorf("got %d firings after a sweep, want 5: %v", len(got), got)
		}
	}
}

// firingStore calls before ahead of the next FireJob.
type firingStore struct {
	port.Store
	before func()
}

func (s *firingStore) FireJob(ctx context.Context, j job.Job, firings ...port.Write) error {
	if do := s.before; do != nil {
		s.before = nil
		do()
	}
	return s.Store.FireJob(ctx, j, firings...)
}

// TestConcurrentChangeIsDecidedAgain commits a change of the job between the decision
// and the commit of a wake-up.
func TestConcurrentChangeIsDecidedAgain(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		meanwhile func(h *fixture, ref job.Ref)
		want      []string
		wake      time.Duration
	}{
		"another wake-up": {func(h *fixture, ref job.Ref) { h.ok(h.service.Fire(h.Context(), ref)) }, []string{"1h0m0s schedule Pending"}, 2 * time.Hour},
		"a pause": {func(h *fixture, ref job.Ref) {
			h.changeJob(ref, func(j job.Job) job.Job { return j.Pause(h.clock.now) })
		}, nil, 0},
		"another schedule": {func(h *fixture, ref job.Ref) {
			h.changeJob(ref, func(j job.Job) job.Job {
				d := j.Definition
				d.Schedule = "@every 5m"
				return j.Apply(d, "me", h.clock.now)
			})
		}, nil, time.Hour + 5*time.Minute},
		"a deletion": {func(h *fixture, ref job.Ref) {
			j, err := h.store.LoadJob(h.Context(), ref.Tenant, ref.ID)
			h.ok(err)
			h.ok(h.store.DeleteJob(h.Context(), j))
		}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			ref := h.createJob("hourly", "schedule: \"@every 1h\"\n")
			h.clock.to(epoch.Add(time.Hour))
			late := h.system(wiring{store: &firingStore{h.store, func() { row.meanwhile(h, ref) }}})
			h.ok(late.Fire(t.Context(), ref))
			h.wantRuns(ref, row.want...)
			var want time.Time
			if row.wake > 0 {
				want = epoch.Add(row.wake)
			}
			if at := h.schedules.WakeUp(ref); !at.Equal(want) {
				t.Errorf("got wake-up %s, want %s", at, want)
			}
		})
	}
}
