package runs_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// TestStoppedProcessStartsTheNewestTime stops the process for 40 s.
func TestStoppedProcessStartsTheNewestTime(t *testing.T) {
	t.Parallel()
	for more, want := range map[string][]string{
		"":               {"2s schedule Completed missed x19", "40s schedule Running"},
		"missed: none\n": {"2s schedule Completed missed x20"},
		"missed: all\nstartingDeadline: 10s\n": {
			"2s schedule Completed starting_deadline x15", "32s catch_up Running", "34s catch_up Running", "36s catch_up Running", "38s catch_up Running", "40s schedule Running",
		},
	} {
		h := setup(t, manyMachines)
		ref := h.createJob("often", "schedule: \"@every 2s\"\n"+more)
		h.clock.to(epoch.Add(41 * time.Second))
		h.fire(ref)
		h.wantRuns(ref, want...)
		h.sweep()
		h.wantRuns(ref, want...)
	}
}

// TestLateWakeUpsOfAPlatform wakes a job as late as its platform may, and later.
func TestLateWakeUpsOfAPlatform(t *testing.T) {
	t.Parallel()
	h := setup(t, manyMachines)
	h.schedules.Late = 90 * time.Second
	ref := h.createJob("often", "schedule: \"@every 30s\"\n")
	h.clock.to(epoch.Add(100 * time.Second))
	h.fire(ref)
	h.wantRuns(ref, "30s schedule Running", "1m0s schedule Running", "1m30s schedule Running")
	_, _, err := h.service.Jobs.Put(t.Context(), client, "short", []byte("image: worker\nschedule: \"@daily\"\nstartingDeadline: 30s\n"), change.Precondition{})
	if f := fault.Of(err); f == nil || f.Code != fault.Unprocessable || f.Field != "startingDeadline" {
		t.Errorf("got %v for a deadline that wake-ups cannot hold, want it refused", err)
	}
}

// TestMissedTimesStartOneAfterTheOther catches up a job with one slot, whatever its action on
// a violation is.
func TestMissedTimesStartOneAfterTheOther(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"", "actions: {onConstraintViolation: {type: skip}}\n", "actions: {onViolationOf: {maxConcurrentRuns: {type: kill_old}}}\n"} {
		h := setup(t, manyMachines)
		ref := h.createJob("minutely", "schedule: \"@every 1m\"\nconstraints: {catchUp: true, maxConcurrentRuns: 1}\n"+action)
		h.clock.to(epoch.Add(4*time.Minute + time.Second))
		h.fire(ref)
		for n := 1; n <= 4; n++ {
			id := run.FiringID("minutely", epoch.Add(time.Duration(n)*time.Minute))
			for i, line := range h.runsOf(ref) {
				want := run.ActionRunning
				switch {
				case i+1 < n:
					want = run.Completed
				case i+1 == n:
					want = run.Running
				}
				if !strings.HasSuffix(line, " "+string(want)) {
					t.Fatalf("%s: got runs %q before the end of number %d, want one at a time", action, h.runsOf(ref), n)
				}
			}
			h.exit(id, 0)
			h.step()
		}
		for _, r := range h.runsOf(ref) {
			if strings.Contains(r, "missed") {
				t.Errorf("got %s, want no skipped run", r)
			}
		}
	}
}
