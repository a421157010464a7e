package run_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"pgregory.net/rapid"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// contender returns run number n of a job. Runs are created in the order of n.
func contender(n int, a spec.ActionType, change ...func(*run.Run)) run.Run {
	r := run.Run{
		ID: string(rune('a' + n)), JobID: "nightly", State: run.Running, CreatedAt: epoch.Add(time.Duration(n) * time.Second),
		Constraints: &spec.Constraints{MaxConcurrentRuns: 1}, Actions: &spec.Actions{OnViolation: &spec.Action{Type: a}},
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

func cancelled(r *run.Run) { r.Cancel = &run.CancelRequest{By: "job:nightly"} }

// TestNewestRunsKeepTheSlots: only as many of the oldest runs are replaced as necessary.
func TestNewestRunsKeepTheSlots(t *testing.T) {
	t.Parallel()
	kill := func(n int, change ...func(*run.Run)) run.Run { return contender(n, spec.ActionKillOld, change...) }
	for name, row := range map[string]struct {
		contenders []run.Run
		slots      int
		want       string
		by         string
	}{
		"the only slot":                        {[]run.Run{kill(0)}, 1, "a", ""},
		"a waiting one too":                    {[]run.Run{kill(0), kill(1)}, 1, "ba", ""},
		"one that is being cancelled":          {[]run.Run{kill(0, cancelled), kill(1)}, 1, "b", ""},
		"three slots, one is needed":           {[]run.Run{kill(0), kill(1), kill(2)}, 3, "a", ""},
		"three slots, two wait":                {[]run.Run{kill(0), kill(1), kill(2), kill(3)}, 3, "ba", ""},
		"free slots":                           {[]run.Run{kill(0)}, 3, "", ""},
		"a newer one that replaces":            {[]run.Run{kill(0), kill(6)}, 1, "", "g"},
		"a newer one that does not replace":    {[]run.Run{kill(0), contender(6, spec.ActionSkip)}, 1, "a", ""},
		"newer ones that leave a slot":         {[]run.Run{kill(0), kill(1), kill(6)}, 2, "ba", ""},
		"a lowered limit":                      {[]run.Run{kill(0), kill(1), kill(2)}, 2, "ba", ""},
		"no limit":                             {[]run.Run{kill(0)}, 0, "", ""},
		"itself, and one that ended by chance": {[]run.Run{kill(5), kill(0, func(r *run.Run) { r.State = run.Completed })}, 1, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replaced, by := kill(5).Replaces(row.contenders, row.slots)
			got := ""
			for _, r := range replaced {
				got += r.ID
			}
			if got != row.want || by != row.by {
				t.Errorf("got %q replaced and %q as its own replacement, want %q and %q", got, by, row.want, row.by)
			}
		})
	}
}

// TestOverlappingReplacementsLeaveTheNewest lets runs with kill_old join in a random order.
// Each reads the contenders after it has joined. The newest runs must be left.
func TestOverlappingReplacementsLeaveTheNewest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.IntRange(1, 4).Draw(t, "slots")
		order := rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6}[:rapid.IntRange(1, 7).Draw(t, "runs")]).Draw(t, "order")
		var joined []run.Run
		var late []int // runs that have joined and not read the contenders yet
		look := func(n int) {
			replaced, by := contender(n, spec.ActionKillOld).Replaces(joined, slots)
			gone := func(r run.Run) bool {
				return by != "" && r.ID == contender(n, "").ID || slices.ContainsFunc(replaced, func(o run.Run) bool { return o.ID == r.ID })
			}
			joined = slices.DeleteFunc(joined, gone)
		}
		for _, n := range order {
			joined = append(joined, contender(n, spec.ActionKillOld))
			if late = append(late, n); rapid.Bool().Draw(t, "looks") {
				for _, n := range late {
					look(n)
				}
				late = nil
			}
		}
		for _, n := range late {
			look(n)
		}
		var left []string
		for _, r := range joined {
			left = append(left, r.ID)
		}
		slices.Sort(left)
		var want []string
		for n := max(len(order)-slots, 0); n < len(order); n++ {
			want = append(want, contender(n, "").ID)
		}
		if !slices.Equal(left, want) {
			t.Fatalf("got %v left of %d runs with %d slots, want %v", left, len(order), slots, want)
		}
	})
}

// TestPreviousRunHasToSucceed evaluates requirePreviousSuccess for states of the previous run.
func TestPreviousRunHasToSucceed(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		state  run.State
		slot   platform.SlotState
		want   string
		awaits bool
	}{
		"succeeded":                {state: run.Completed},
		"failed":                   {state: run.Failed, want: "requirePreviousSuccess: run p failed at 2026-11-21T09:00:00Z"},
		"cancelled":                {state: run.Cancelled, want: "requirePreviousSuccess: run p was cancelled at 2026-11-21T09:00:00Z"},
		"orphaned":                 {state: run.Orphaned, want: "requirePreviousSuccess: run p was orphaned at 2026-11-21T09:00:00Z"},
		"runs":                     {run.Running, platform.SlotHeld, "requirePreviousSuccess: previous_running: run p is under way, in Running", true},
		"waits":                    {run.ActionRunning, platform.SlotQueued, "requirePreviousSuccess: previous_running: run p is under way, in ActionRunning", true},
		"checks from time to time": {run.ActionRunning, "", "requirePreviousSuccess: previous_running: run p is under way, in ActionRunning", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := run.Run{ID: "p", JobID: "nightly", State: row.state, EndedAt: epoch, JobSlot: platform.Slot{State: row.slot}}
			v, violated := run.PreviousViolation(p, epoch)
			if violated != (row.want != "") || violated && (v.String() != row.want || v.Awaits != row.awaits) {
				t.Errorf("got %q, awaits %v, want %q and %v", v, v.Awaits, row.want, row.awaits)
			}
		})
	}
}

// TestReplacedRunIsLookedPast cancels runs on request of a client, and in favor of a newer run.
func TestReplacedRunIsLookedPast(t *testing.T) {
	t.Parallel()
	for by, want := range map[string]bool{"token:abc": true, "job:nightly": false} {
		r := contender(0, spec.ActionKillOld, func(r *run.Run) {
			r.State, r.EndedAt, r.Cancel = run.Cancelled, epoch, &run.CancelRequest{By: by}
		})
		if _, counts := r.Result(); counts != want || r.IgnoredAsPrevious() == want {
			t.Errorf("cancelled by %s: got a result %v, want %v", by, counts, want)
		}
	}
}
