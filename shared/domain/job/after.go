package job

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// Dependency is a job that another one comes after. In a document it is the id of the job, or an
// object.
type Dependency struct {
	Job string `json:"job"`
	// When is how the run of the job must end; empty means run.WhenSuccess.
	When run.When `json:"when,omitempty"`
}

// The limits of a graph.
const (
	// MaxGraph is the maximum number of jobs in a graph.
	MaxGraph = 100
	// maxAfter is the maximum number of jobs that one job comes after.
	maxAfter = 50
)

// dependencyObject is the document form of a dependency with When.
type dependencyObject Dependency

// MarshalJSON returns the document form of the dependency.
func (d Dependency) MarshalJSON() ([]byte, error) {
	if d.When == "" {
		return json.Marshal(d.Job)
	}
	return json.Marshal(dependencyObject(d))
}

// UnmarshalJSON reads the document form of a dependency.
func (d *Dependency) UnmarshalJSON(text []byte) error {
	*d = Dependency{}
	into := any((*dependencyObject)(d))
	if len(text) > 0 && text[0] == '"' {
		into = &d.Job
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("dependency: %w", err)
	}
	return nil
}

func (p *problems) dependency(n node, to reflect.Value, path string) {
	switch n.kind {
	case kindText:
		to.Set(reflect.ValueOf(Dependency{Job: n.text}))
	case kindObject:
		var object dependencyObject
		p.object(n, reflect.ValueOf(&object).Elem(), path)
		to.Set(reflect.ValueOf(Dependency(object)))
	default:
		p.mismatch(n, path, "the id of a job or {job: ID, when: success}")
	}
}

// validateAfter checks the jobs that the job comes after, as far as its document says.
func validateAfter(d Definition, adHoc bool, p *problems) {
	if len(d.After) == 0 {
		return
	}
	switch {
	case adHoc:
		p.bad("after", "dependencies of a single run, want none")
		return
	case d.Scheduled():
		p.addConflict("after", "a schedule and after; leave the schedule out: the job runs at the times of the jobs that it comes after")
	}
	if len(d.After) > maxAfter {
		p.bad("after", "%d jobs, want at most %d", len(d.After), maxAfter)
	}
	for i, a := range d.After {
		field := join("after", strconv.Itoa(i))
		switch {
		case a.Job == "":
			p.bad(field, "missing job, want the id of a job or {job: ID, when: success}")
		case !limit.ValidName(a.Job):
			p.bad(field, "malformed job %q, %s", limit.Cut(a.Job, nameLimit), wantName)
		case a.Job == d.ID:
			p.addConflict(field, "the job comes after itself, want another job")
		case slices.ContainsFunc(d.After[:i], func(b Dependency) bool { return b.Job == a.Job }):
			p.addConflict(field, "the job %s is listed twice, want it once", a.Job)
		}
		oneOf(p, join(field, "when"), a.When, run.WhenSuccess, run.WhenFailure, run.WhenAlways)
	}
}

// UnknownAfter returns the warning that the job at index i of After is not stored.
func UnknownAfter(i int, jobID string) string {
	return fmt.Sprintf("after.%d: the job %s does not exist yet; store it first", i, jobID)
}

// ComesAfter reports whether the job comes after another one.
func (d Definition) ComesAfter(jobID string) bool {
	return slices.ContainsFunc(d.After, func(a Dependency) bool { return a.Job == jobID })
}

// Needs returns what the job needs of the runs of the jobs that it comes after, without the runs.
func (d Definition) Needs() []run.Need {
	needs := make([]run.Need, len(d.After))
	for i, a := range d.After {
		needs[i] = run.Need{JobID: a.Job, When: a.When}
	}
	return needs
}

// WithFollower returns the job with another one in Followers, or without it.
func (j Job) WithFollower(jobID string, follows bool) Job {
	i, has := slices.BinarySearch(j.Followers, jobID)
	switch {
	case has == follows:
	case follows:
		j.Followers = slices.Insert(slices.Clone(j.Followers), i, jobID)
	default:
		j.Followers = slices.Delete(slices.Clone(j.Followers), i, i+1)
	}
	return j
}
