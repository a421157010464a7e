package run

import (
	"fmt"
	"slices"

	"github.com/sortie-dev/sortie/shared/limit"
)

// JobRun names a run of a stored job.
type JobRun struct {
	// JobID is empty for a run without a stored job.
	JobID string `json:"jobId,omitempty"`
	RunID string `json:"runId"`
}

// Parent is what a run knows about the run that triggered it, as it was then.
type Parent struct {
	JobRun
	State State `json:"state"`
	// Output is the accepted output; nil without one.
	Output *Upload `json:"output,omitempty"`
}

// TriggerParameter is a variable of a triggered run: a text, or the output of the run that
// triggers it.
type TriggerParameter struct {
	Text       string `json:"text,omitempty"`
	FromOutput bool   `json:"fromOutput,omitempty"`
}

// TriggeredBy returns the run that triggered the run by trigger_job; zero without one.
func (r Run) TriggeredBy() JobRun {
	if r.ParentRun == "" {
		return JobRun{}
	}
	by := JobRun{RunID: r.ParentRun}
	if n := len(r.Lineage); n > 0 {
		by.JobID = r.Lineage[n-1]
	}
	return by
}

// AsParent returns what a run that the run triggers knows about it.
func (r Run) AsParent() *Parent {
	p := &Parent{JobRun: JobRun{r.JobID, r.ID}, State: r.State}
	if r.Output != nil {
		p.Output = &r.Output.Upload
	}
	return p
}

// PassesOutput reports whether a triggered run gets the output of the run as a variable.
func (r Run) PassesOutput() bool {
	a, ok := r.ActionOf(OnSuccess)
	if !ok {
		return false
	}
	for _, p := range a.Parameters {
		if p.FromOutput {
			return true
		}
	}
	return false
}

// ParametersOf returns the variables of the run that the action triggers, or why the run
// has them not.
func (r Run) ParametersOf(a Action) (values map[string]string, failure string) {
	for name, p := range a.Parameters {
		text := p.Text
		if p.FromOutput {
			switch o := r.Output; {
			case o == nil:
				return nil, "the run has no output for the variable " + name
			case o.Size > limit.OutputText:
				return nil, fmt.Sprintf("the output for the variable %s has %d bytes, want at most %d", name, o.Size, limit.OutputText)
			case o.Text == nil:
				return nil, "the output for the variable " + name + " is no text in UTF-8"
			default:
				text = *o.Text
			}
		}
		if values == nil {
			values = map[string]string{}
		}
		values[name] = text
	}
	return values, ""
}

// triggered records a run that the run has triggered, once.
func (d *draft) triggered(child *JobRun) {
	if child != nil && !slices.Contains(d.Triggered, *child) {
		d.Triggered = append(slices.Clone(d.Triggered), *child)
	}
}
