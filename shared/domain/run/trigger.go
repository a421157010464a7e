package run

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/shared/base/limit"
)

// JobRun identifies a run of a stored job.
type JobRun struct {
	// JobID is empty for a run without a stored job.
	JobID string `json:"jobId,omitempty"`
	RunID string `json:"runId"`
}

// Parent describes the run that triggered a run, as of that time.
type Parent struct {
	JobRun
	State State `json:"state"`
	// Output is the accepted output; nil without one.
	Output *Upload `json:"output,omitempty"`
	// Skipped: the run was skipped. Result is the output of the run of a graph, if it is a small
	// document in JSON; nil otherwise. Both are empty for a run of trigger_job.
	Skipped bool            `json:"skipped,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
}

// TriggeredBy returns the run that triggered r by trigger_job; zero without one.
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

// AsParent returns the description of r for the runs that it triggers.
func (r Run) AsParent() *Parent {
	p := &Parent{JobRun: JobRun{r.JobID, r.ID}, State: r.State}
	if r.Output != nil {
		p.Output = &r.Output.Upload
	}
	return p
}

// PassesOutput reports whether the run passes the text of its output to another run: as a variable
// of an onSuccess action, or as the result that jobs after this one get.
func (r Run) PassesOutput() bool {
	if len(r.Followers) > 0 || r.Child != nil {
		return true
	}
	for _, a := range r.Actions.On(spec.OnSuccess) {
		for _, p := range a.Parameters {
			if p.FromOutput {
				return true
			}
		}
	}
	return false
}

// ParametersOf returns the variables of the run that the action triggers. failure says why a
// variable has no value; empty for a success.
func (r Run) ParametersOf(a spec.Action) (values map[string]string, failure string) {
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

// recordTriggered adds a run to Triggered, once.
func (d *draft) recordTriggered(child *JobRun) {
	if child != nil && !slices.Contains(d.Triggered, *child) {
		d.Triggered = append(slices.Clone(d.Triggered), *child)
	}
}
