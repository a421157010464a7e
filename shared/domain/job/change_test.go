package job_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/job"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func hourly(t *testing.T, more string) job.Definition {
	t.Helper()
	return parseJob(t, "id: a\nimage: b\nschedule: \"0 * * * *\"\n"+more)
}

func wantNext(t *testing.T, j job.Job, next, wake time.Time) {
	t.Helper()
	if !j.NextAt.Equal(next) || !j.WakeAt.Equal(wake) {
		t.Errorf("got next firing %s, wake-up %s, want %s, %s", j.NextAt, j.WakeAt, next, wake)
	}
}

func TestNewScheduleCountsFromItsCommit(t *testing.T) {
	t.Parallel()
	j := job.Create("t", hourly(t, ""), "me", noon)
	wantNext(t, j, noon.Add(time.Hour), noon.Add(time.Hour))
	if j.Version != 1 || j.Revision != 0 || j.Since != noon || j.UpdatedBy != "me" {
		t.Errorf("got %+v, want version 1 since noon", j)
	}
	wantNext(t, job.Create("t", parseJob(t, "id: a\nimage: b\n"), "me", noon), time.Time{}, time.Time{})
	wantNext(t, job.Create("t", parseJob(t, "id: a\nimage: b\nschedule: \"@at 2026-03-02T11:59:59Z\"\n"), "me", noon), time.Time{}, time.Time{})
}

func TestChangeKeepsTheNextFiring(t *testing.T) {
	t.Parallel()
	j := job.Create("t", parseJob(t, "id: a\nimage: b\nschedule: \"@every 7m\"\n"), "me", noon)
	later := noon.Add(5 * time.Minute)
	same := j.Apply(parseJob(t, "id: a\nimage: c\nschedule: \"@every 7m\"\n"), "you", later)
	wantNext(t, same, noon.Add(7*time.Minute), noon.Add(7*time.Minute))
	if same.Version != 2 || same.Since != noon || same.UpdatedAt != later || same.UpdatedBy != "you" || same.CreatedAt != noon {
		t.Errorf("got %+v, want version 2 with the old schedule", same)
	}
	other := same.Apply(parseJob(t, "id: a\nimage: c\nschedule: \"@every 6m\"\n"), "you", later)
	wantNext(t, other, later.Add(6*time.Minute), later.Add(6*time.Minute))
	none := other.Apply(parseJob(t, "id: a\nimage: c\n"), "you", later)
	wantNext(t, none, time.Time{}, time.Time{})
}

func TestPauseIsNotAMissedFiring(t *testing.T) {
	t.Parallel()
	j := job.Create("t", hourly(t, ""), "me", noon).Pause(noon.Add(time.Minute))
	wantNext(t, j, noon.Add(time.Hour), time.Time{})
	if again := j.Pause(noon.Add(time.Hour)); again.PausedAt != noon.Add(time.Minute) {
		t.Errorf("got paused at %s, want the first pause", again.PausedAt)
	}
	resumed := j.Resume(noon.Add(150 * time.Minute))
	wantNext(t, resumed, noon.Add(3*time.Hour), noon.Add(3*time.Hour))
	if resumed.Paused || !resumed.PausedAt.IsZero() {
		t.Errorf("got %+v, want no pause", resumed)
	}
}

func TestResumeCatchesUp(t *testing.T) {
	t.Parallel()
	j := job.Create("t", hourly(t, "constraints: {catchUp: true}\n"), "me", noon).Pause(noon).Resume(noon.Add(150 * time.Minute))
	wantNext(t, j, noon.Add(time.Hour), noon.Add(time.Hour))
}

func TestResumeOfARunningJobChangesNothing(t *testing.T) {
	t.Parallel()
	j := job.Create("t", hourly(t, ""), "me", noon)
	wantNext(t, j.Resume(noon.Add(90*time.Minute)), noon.Add(time.Hour), noon.Add(time.Hour))
}

func TestChangeOfAPausedJobStaysPaused(t *testing.T) {
	t.Parallel()
	j := job.Create("t", hourly(t, ""), "me", noon).Pause(noon).Apply(hourly(t, "timeZone: Asia/Kolkata\n"), "me", noon)
	wantNext(t, j, noon.Add(30*time.Minute), time.Time{})
}

// TestJitterSpreadsJobs counts the wake-ups of a thousand jobs in each tenth of the jitter.
func TestJitterSpreadsJobs(t *testing.T) {
	t.Parallel()
	var tenths [10]int
	for i := range 1000 {
		j := job.Create("t", parseJob(t, fmt.Sprintf("id: job-%d\nimage: b\nschedule: \"@daily\"\njitter: 50s\n", i)), "me", noon)
		late := j.WakeAt.Sub(j.NextAt)
		if late < 0 || late >= 50*time.Second || late != j.Delay() {
			t.Fatalf("got a wake-up %s after the firing, want less than 50s", late)
		}
		tenths[late/(5*time.Second)]++
	}
	for i, n := range tenths {
		if n < 60 || n > 140 {
			t.Errorf("got %d of 1000 jobs in tenth %d of the jitter, want about 100", n, i)
		}
	}
}
