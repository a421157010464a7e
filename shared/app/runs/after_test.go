package runs_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/jobs"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// putJobs stores jobs whose documents have an id each, in order, and sets their wake-ups.
func (h *fixture) putJobs(documents ...string) {
	h.Helper()
	for _, document := range documents {
		id, more, _ := strings.Cut(document, "\n")
		_, _, err := h.service.Jobs.Put(h.Context(), client, id, []byte("image: worker\nretryConfig: {maxRetries: 0}\n"+more), change.Precondition{})
		h.ok(err)
	}
}

// graph returns the runs of jobs: their states, and why they were skipped.
func (h *fixture) graph(ids ...string) string {
	h.Helper()
	var found []string
	for _, id := range ids {
		runs, _, err := h.store.List(h.Context(), client.Tenant, port.Page{JobID: id, Limit: 100})
		h.ok(err)
		for _, r := range runs {
			text := id + " " + string(r.State)
			if r.Missed != nil {
				text = id + " " + string(r.Missed.Reason)
			}
			found = append(found, text)
		}
	}
	return strings.Join(found, ", ")
}

func (h *fixture) wantGraph(want string, ids ...string) {
	h.Helper()
	if got := h.graph(ids...); got != want {
		h.Errorf("got %q, want %q", got, want)
	}
}

var first = epoch.Add(time.Minute)

// firstRun returns the id of a job's run of the first firing.
func firstRun(id string) string { return run.FiringID(id, first) }

// diamond is a graph of four jobs, whose first one has a schedule.
var diamond = []string{
	"extract\nschedule: \"@at 2026-03-01T08:01:00Z\"\n", "prices\nafter: [extract]\n", "stock\nafter: [extract]\n",
	"report\nafter: [prices, {job: stock, when: success}]\n", "alert\nafter: [{job: prices, when: failure}]\n", "tidy\nafter: [{job: report, when: always}]\n",
}

func (h *fixture) beginGraph() {
	h.Helper()
	h.putJobs(diamond...)
	h.wake(job.Ref{Tenant: client.Tenant, ID: "extract"})
	h.exit(firstRun("extract"), 0)
}

// TestJobsComeAfterOthers runs a graph, in which every run succeeds or one fails.
func TestJobsComeAfterOthers(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]string{
		0: "extract Completed, prices Completed, stock Completed, report Completed, alert upstream_failed, tidy Completed",
		1: "extract Completed, prices Failed, stock Completed, report upstream_failed, alert Completed, tidy Completed",
	} {
		h := setup(t)
		h.beginGraph()
		h.wantGraph("prices Running, stock Running", "prices", "stock", "report", "alert", "tidy")
		h.exit(firstRun("prices"), code)
		h.exit(firstRun("stock"), 0)
		if code == 0 {
			h.exit(firstRun("report"), 0)
			r := h.record(firstRun("report"))
			if len(r.Graph.Upstream) != 2 || r.Graph.Upstream[0].JobID != "prices" || r.Trigger != run.TriggerAfter || !r.ScheduledAt.Equal(first) || r.TriggeredBy().JobID != "stock" {
				t.Errorf("got graph %+v, trigger %s at %s by %v", r.Graph, r.Trigger, r.ScheduledAt, r.TriggeredBy())
			}
		} else {
			h.exit(firstRun("alert"), 0)
		}
		h.exit(firstRun("tidy"), 0)
		h.wantGraph(want, "extract", "prices", "stock", "report", "alert", "tidy")
		for _, id := range []string{"extract", "prices", "stock", "tidy"} {
			if r := h.record(firstRun(id)); len(r.Execution.Pending) > 0 {
				t.Errorf("got pending effects %+v of %s, want none", r.Execution.Pending, id)
			}
		}
	}
}

// TestGraphOfARequest starts a job without a time, twice.
func TestGraphOfARequest(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.putJobs("a\n", "b\nafter: [a]\n", "c\nafter: [b]\n")
	for range 2 {
		r, _, err := h.service.Jobs.RunJob(t.Context(), jobs.RunRequest{Identity: client, JobID: "a"})
		h.ok(err)
		h.step()
		h.advance(time.Second)
		h.exit(r.ID, 0)
		h.exit("b:"+r.ID, 0)
		c := h.record("c:" + r.ID)
		if !c.ScheduledAt.IsZero() || !c.Scheduled().Equal(r.Scheduled()) || c.Graph.Root != (run.JobRun{JobID: "a", RunID: r.ID}) {
			t.Errorf("got scheduled %s and %+v, want %s and root %s", c.Scheduled(), c.Graph, r.Scheduled(), r.ID)
		}
		h.exit(c.ID, 0)
	}
	h.wantGraph("c Completed, c Completed", "c")
}

// TestGraphResumes loses the creation of the runs that come after another, before or after it is
// stored.
func TestGraphResumes(t *testing.T) {
	t.Parallel()
	for _, applied := range []bool{false, true} {
		h := setup(t)
		h.putJobs(diamond...)
		h.wake(job.Ref{Tenant: client.Tenant, ID: "extract"})
		lost := 0
		h.store.around = func(write func() error) error {
			if lost++; lost > 3 {
				return write()
			}
			if applied {
				h.ok(write())
			}
			return errors.New("connection lost")
		}
		h.machineOf(firstRun("extract")).exit(0)
		for range 6 {
			_ = h.service.Sweep(h.Context(), 0)
			h.step()
			h.advance(time.Minute)
		}
		h.wantGraph("prices Running, stock Running", "prices", "stock")
	}
}

// TestCancelOfAGraph cancels the first run while it runs, after its end, and a later one.
func TestCancelOfAGraph(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"running": "prices upstream_cancelled, stock upstream_cancelled, report upstream_cancelled, tidy upstream_cancelled",
		"ended":   "prices Cancelled, stock Cancelled, report upstream_cancelled, tidy upstream_cancelled",
		"later":   "prices Cancelled, stock Running, report upstream_failed, tidy Running",
	} {
		h := setup(t)
		h.putJobs(diamond...)
		h.wake(job.Ref{Tenant: client.Tenant, ID: "extract"})
		id := "extract"
		if name != "running" {
			h.exit(firstRun("extract"), 0)
		}
		if name == "later" {
			id = "prices"
		}
		_, err := h.service.Cancel(t.Context(), client, firstRun(id), "enough")
		h.ok(err)
		for range 10 {
			h.advance(15 * time.Second)
			h.sweep()
		}
		if got := h.graph("prices", "stock", "report", "tidy"); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// TestFollowerIsStoredLater stores a job while one of the runs that it comes after is under way,
// and the other does not exist yet.
func TestFollowerIsStoredLater(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.putJobs("root\nschedule: \"@at 2026-03-01T08:01:00Z\"\n", "slow\nafter: [root]\n", "gate\nafter: [root]\n", "quick\nafter: [gate]\n")
	h.wake(job.Ref{Tenant: client.Tenant, ID: "root"})
	h.exit(firstRun("root"), 0)
	h.putJobs("late\nafter: [slow, quick]\n")
	h.exit(firstRun("gate"), 0)
	h.exit(firstRun("quick"), 0)
	h.wantGraph("slow Running", "slow", "late")
	if got := h.record(firstRun("slow")).Followers; len(got) != 1 || got[0] != "late" {
		t.Errorf("got followers %v of the slow run, want late", got)
	}
	h.exit(firstRun("slow"), 0)
	h.wantGraph("late Running", "late")
}

// TestRefusedDependencies stores jobs with unknown jobs, circles and too many jobs.
func TestRefusedDependencies(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.putJobs("a\n", "b\nafter: [a]\n", "c\nafter: [b]\n")
	for document, want := range map[string]string{
		"a\nafter: [c]":                                "after.0: the jobs come after each other in a circle: a -> b -> c -> a",
		"a\nafter: [a]":                                "after.0: the job comes after itself",
		"d\nafter: [a, none]":                          `after.1: unknown job "none"`,
		"d\nafter: [a, a]":                             "after.1: the job a is listed twice",
		"d\nafter: [{job: a, when: x}]":                `after.0.when: unknown value "x"`,
		"d\nafter: [a]\nschedule: '@daily'":            "after: a schedule and after",
		"d\nafter: [a]\ninputs: {x: {required: true}}": "inputs.x.required: a run after other jobs has no value",
	} {
		id, more, _ := strings.Cut(document, "\n")
		_, _, err := h.service.Jobs.Put(t.Context(), client, id, []byte("image: worker\n"+more+"\n"), change.Precondition{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", document, err, want)
		}
	}
	err := h.service.Jobs.Delete(t.Context(), client, "b", change.Precondition{})
	if !fault.Is(err, fault.Unprocessable) || !strings.Contains(err.Error(), "other jobs come after the job: c") {
		t.Errorf("got %v, want a refusal that names c", err)
	}
	h.ok(h.service.Jobs.Delete(t.Context(), client, "c", change.Precondition{}))
	h.ok(h.service.Jobs.Delete(t.Context(), client, "b", change.Precondition{}))
	for i := range job.MaxGraph - 1 {
		h.putJobs(fmt.Sprintf("n%d\nafter: [a]\n", i))
	}
	_, _, err = h.service.Jobs.Put(t.Context(), client, "more", []byte("image: worker\nafter: [n1]\n"), change.Precondition{})
	if err == nil || !strings.Contains(err.Error(), "more than 100 jobs") {
		t.Errorf("got %v, want a refusal of the job 101", err)
	}
}
