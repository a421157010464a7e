package job

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// RetryChanges are the parts that a retry does not take from the old run. A zero field keeps the part
// of that run.
type RetryChanges struct {
	Image   string
	Command []string
	// Parameters are environment variables. They replace those of the same names.
	Parameters map[string]string
	Options    *ExportOptions
	Priority   spec.Priority
	// Inputs are values of inputs. They replace those of the same names; see Definition.InputValues.
	Inputs map[string]spec.Value `json:",omitempty"`
	// OnlyFailed runs the children again that have not succeeded.
	OnlyFailed bool `json:",omitempty"`
	// Labels change the labels of the old run.
	Labels label.Change `json:",omitempty"`
}

// None reports whether nothing is changed.
func (c RetryChanges) None() bool { return reflect.ValueOf(c).IsZero() }

// Digest identifies the request for a retry of a task with the changes.
func (c RetryChanges) Digest(taskID string) string {
	digest := RetryDigest(taskID)
	if !c.None() {
		text, _ := json.Marshal(c) //nolint:errchkjson // texts, numbers and flags have a JSON form
		digest += fmt.Sprintf(" with %s", text)
	}
	return digest
}

// RetryDigest identifies the request for a retry of a task without changes.
func RetryDigest(taskID string) string { return "retry of " + taskID }

// Of applies the changes to again, a run from run.Run.ForRetry. Faults: InvalidRequest with the
// field for a change that the kind of the run does not have, DefinitionProblems.
func (c RetryChanges) Of(again run.Run) (run.Run, error) {
	if err := c.check(again); err != nil || c.None() {
		return again, err
	}
	if c.Priority != "" {
		again = again.With(spec.Override{Priority: c.Priority, Key: again.Override.Key})
	}
	again.Labels = c.Labels.Apply(again.Labels)
	again.Work.Image = cmp.Or(c.Image, again.Work.Image)
	if c.Options != nil {
		again.Work.Options = exportOf(again.Work, c.Options).Work().Options
	}
	if again.Work.Program == nil {
		return again, nil
	}
	again.Work.Program = again.Work.Program.With(c.Parameters)
	if c.Command != nil {
		again.Work.Program.Command = c.Command
	}
	if again.JobID != "" && len(c.Parameters) > 0 {
		all := maps.Clone(again.Parameters)
		if all == nil {
			all = map[string]string{}
		}
		maps.Copy(all, c.Parameters)
		again.Parameters = all
	}
	return again, nil
}

// check refuses changes that the run cannot have.
func (c RetryChanges) check(again run.Run) error {
	for _, field := range []struct {
		name           string
		given, refused bool
		why            string
	}{
		{"priority", c.Priority != "", again.Work.Kind == spec.KindInference, "an inference task has no such change"},
		{"options", c.Options != nil, again.Work.Kind != spec.KindExport, "only an export has options"},
		{"image", c.Image != "", again.Work.Program == nil, "only a program has an image"},
		{"command", c.Command != nil, again.Work.Program == nil, "only a program has a command"},
		{"parameters", c.Parameters != nil, again.Work.Program == nil, "only a program has environment variables"},
		{"options", c.Options != nil, again.JobID != "", "the run has the options of its job"},
		{"image", c.Image != "", again.JobID != "", "the run has the image of its job"},
		{"command", c.Command != nil, again.JobID != "", "the run has the command of its job"},
	} {
		if field.given && field.refused {
			return fault.Invalid(field.name, "%s; leave it out", field.why)
		}
	}
	labels := c.Labels.Check()
	if labels == nil {
		labels = label.Check(c.Labels.Apply(again.Labels))
	}
	problems := append(CheckOverride(spec.Override{Priority: c.Priority}), LabelProblems(labels)...)
	switch {
	case c.Options != nil:
		problems = append(problems, exportOf(again.Work, c.Options).Validate()...)
	case again.Work.Program != nil:
		d := Definition{Image: cmp.Or(c.Image, again.Work.Image), Command: again.Work.Program.Command, Env: map[string]Variable{}}
		if c.Command != nil {
			d.Command = c.Command
		}
		problems = append(problems, d.Validate(&Deployment{AdHoc: true, Policy: again.Policy})...)
		for name, v := range again.Work.Program.Env {
			d.Env[name] = Variable(v)
		}
		problems = append(problems, d.CheckParameters(c.Parameters)...)
	}
	if len(problems) > 0 {
		return NewDefinitionProblems(problems)
	}
	return nil
}

// exportOf returns the export of a run with other options.
func exportOf(w spec.Work, options *ExportOptions) Export {
	return Export{Format: w.Format, PI: w.PI, Options: options}
}
