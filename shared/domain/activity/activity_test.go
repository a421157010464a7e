package activity_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/events/examples"
	"github.com/sortie-dev/sortie/shared/domain/activity"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

var began = time.Date(2026, 11, 28, 12, 1, 0, 0, time.UTC)

func ended(work activity.Work, state run.State, attempt int, seconds float64) activity.Entry {
	return activity.Entry{
		At: began.Add(time.Minute), CreatedAt: began, Ended: true, RunID: "r", Work: work, State: state, Attempt: attempt, Code: "PROGRAM_EXIT", Seconds: seconds,
	}
}

func TestWindowsHaveOneSlotForEachStart(t *testing.T) {
	t.Parallel()
	for _, w := range activity.Windows() {
		keys := map[string]bool{}
		starts := w.Starts(began)
		for _, start := range starts {
			keys[w.Key(start)] = true
		}
		if len(keys) != w.Slots {
			t.Errorf("%s: got %d keys, want %d", w.Name, len(keys), w.Slots)
		}
		if last := starts[len(starts)-1]; last.After(began) || began.Sub(last) >= w.Length {
			t.Errorf("%s: got the last slot at %s, want the one of %s", w.Name, last, began)
		}
		if next := starts[0].Add(time.Duration(w.Slots) * w.Length); w.Key(next) != w.Key(starts[0]) {
			t.Errorf("%s: got another key, want the oldest slot replaced", w.Name)
		}
	}
	if _, ok := activity.WindowOf("1y"); ok {
		t.Error("got a window, want none")
	}
}

// TestPublishedEventsAreParsed reads the examples of the catalogue.
func TestPublishedEventsAreParsed(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		created, ended, failed bool
		after                  time.Duration
	}{
		"job.accepted": {created: true}, "job.failed": {ended: true, failed: true, after: 883 * time.Millisecond}, "job.started": {}, "policy.updated": {}, "export.completed": {},
	} {
		e, ok, err := activity.Parse(example(t, name))
		if err != nil || ok != (want.created || want.ended) {
			t.Errorf("%s: got %t and %v", name, ok, err)
			continue
		}
		if ok && (e.Created != want.created || e.Ended != want.ended || e.Failed() != want.failed || e.At.Sub(e.CreatedAt) != want.after) {
			t.Errorf("%s: got %+v", name, e)
		}
	}
	if _, _, err := activity.Parse([]byte("{")); err == nil {
		t.Error("got no error for malformed JSON")
	}
}

func example(t *testing.T, name string) []byte {
	t.Helper()
	document, err := examples.Files.ReadFile(name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func TestTotalCountsOutcomesCausesAndWork(t *testing.T) {
	t.Parallel()
	job, export := activity.Work{JobID: "a", Kind: "job"}, activity.Work{Kind: "export"}
	var first, second activity.Slot
	for range 6 {
		first.Count(activity.Entry{At: began, CreatedAt: began, Created: true})
	}
	child := ended(job, run.Failed, 1, 10)
	child.Child = true
	first.Count(child)
	child.Created = true
	second.Count(child)
	first.Count(ended(job, run.Failed, 2, 10))
	first.Count(ended(export, run.Completed, 1, 100))
	first.Count(ended(export, run.Cancelled, 1, 0))
	first.Count(activity.Entry{Ended: true, Skipped: true, State: run.Completed, Work: job})
	second.Count(ended(job, run.Orphaned, 1, 10))
	second.Count(ended(job, run.Completed, 1, 10))
	all := activity.Total([]activity.Slot{first, second})
	if want := (activity.Counts{Created: 6, Completed: 2, Skipped: 1, Cancelled: 1, Failed: 2, Children: 1}); all.Counts != want {
		t.Errorf("got %+v, want %+v", all.Counts, want)
	}
	if len(all.Causes) != 2 || all.Causes[0].Runs != 1 || all.Causes[0].LastRun != "r" {
		t.Errorf("got %+v, want a cause for each state", all.Causes)
	}
	if u := all.Works[0]; u.Work != job || u.Runs != 3 || u.Failed != 2 || u.FirstFailed != 2 {
		t.Errorf("got %+v, want the flaky job first", u)
	}
	if got := all.Works[1].Seconds(0.95); got < 90 || got > 110 {
		t.Errorf("got %g s, want about 100", got)
	}
	if got := (activity.Used{}).Seconds(0.95); got != 0 {
		t.Errorf("got %g s without runs, want 0", got)
	}
}

// TestSlotsAreBounded counts more works than a slot has. The size is that of one item.
func TestSlotsAreBounded(t *testing.T) {
	t.Parallel()
	var s activity.Slot
	for i := range 1000 {
		state := run.Completed
		if i == 999 {
			state = run.Failed
		}
		for step := range 8 {
			s.Count(ended(activity.Work{JobID: fmt.Sprintf("job-%d", i), Kind: "job"}, state, 1, float64(step+1)))
		}
	}
	document, err := json.Marshal(s)
	if err != nil || len(document) > 64<<10 {
		t.Errorf("got %d bytes and %v, want at most 64 KiB", len(document), err)
	}
	if !s.Partial || s.Completed != 999*8 || s.Failed != 8 || len(s.Works) != activity.MaxWorks {
		t.Errorf("got %d works, %+v, want all runs counted", len(s.Works), s.Counts)
	}
	if u := s.Works[len(s.Works)-1]; u.JobID != "job-999" || u.Failed != 8 {
		t.Errorf("got %+v, want the failed job in place of another one", u)
	}
	var again activity.Slot
	if err := json.Unmarshal(document, &again); err != nil || cmp.Diff(s, again) != "" {
		t.Errorf("got %v and a different slot", err)
	}
}
