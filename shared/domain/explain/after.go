package explain

import (
	"fmt"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// follows explains a job that comes after others.
func (x *JobExplanation) follows(j job.Job, f JobFacts) {
	x.Upstream = f.Needs
	if len(x.Upstream) == 0 {
		x.Upstream = j.Definition.Needs()
	}
	switch {
	case j.Paused:
		x.Reason, x.Message = JobPaused, fmt.Sprintf("the job is paused since %s; it is skipped after the jobs that it comes after", stamp(j.PausedAt))
		x.Change = &Change{Kind: ResumeJob, Name: j.ID}
		return
	case len(f.Needs) == 0:
		names := make([]string, len(x.Upstream))
		for i, n := range x.Upstream {
			names[i] = n.JobID
		}
		x.Reason, x.Message = JobFollows, "no run is awaited; the job starts after the next runs of job "+strings.Join(names, ", ")
		x.Change = resumed(f, names...)
		return
	}
	var waits, missing []string
	for _, n := range f.Needs {
		switch {
		case n.Run == nil:
			missing = append(missing, n.JobID)
			waits = append(waits, fmt.Sprintf("a run of job %s, which does not exist yet", n.JobID))
		case !n.Run.State.Terminal():
			waits = append(waits, fmt.Sprintf("run %s of job %s, which is %s", n.Run.ID, n.JobID, n.Run.State))
		}
	}
	x.Reason, x.Message = JobAwaits, "the runs that the job comes after have ended; it is being started"
	if len(waits) > 0 {
		x.Message = "the job waits for " + strings.Join(waits, "; for ")
	}
	x.Change = resumed(f, missing...)
}

// resumed returns the change that resumes the first paused one of the jobs; nil without
// one.
func resumed(f JobFacts, ids ...string) *Change {
	for _, id := range ids {
		if j, known := f.Jobs[id]; known && j.Paused && j.Definition.Scheduled() {
			return &Change{Kind: ResumeJob, Name: id}
		}
	}
	return nil
}

// Met reports whether the need is met; known is false while that is open.
func Met(n run.Need) (met, known bool) {
	if n.Run == nil || !n.Run.State.Terminal() {
		return false, false
	}
	return n.When.MetBy(*n.Run), true
}
