package run

import (
	"maps"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/sensor"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// Scheduled returns the scheduled time that the program of the run gets: that of the run, or of
// the run that it retries, or else its creation. It is in UTC and in whole seconds.
func (r Run) Scheduled() time.Time {
	at := r.CreatedAt
	switch {
	case !r.ScheduledAt.IsZero():
		at = r.ScheduledAt
	case !r.RetriedAt.IsZero():
		at = r.RetriedAt
	}
	return at.UTC().Truncate(time.Second)
}

// eventValue returns an attribute of the item of the run; empty for a run without one.
func (r Run) eventValue(name string) (string, bool) {
	if r.Event == nil {
		return sensor.Event{}.Attribute(name)
	}
	return r.Event.Attribute(name)
}

// templateValue returns the value of a name in a template. An input without a value is empty.
func (r Run) templateValue(name string) (string, bool) {
	switch {
	case name == spec.ScheduledName:
		return r.Scheduled().Format(time.RFC3339), true
	case name == spec.RunName:
		return r.ID, true
	case strings.HasPrefix(name, spec.InputPrefix):
		return r.Inputs[strings.TrimPrefix(name, spec.InputPrefix)].Text(), true
	case strings.HasPrefix(name, spec.EventPrefix):
		return r.eventValue(strings.TrimPrefix(name, spec.EventPrefix))
	}
	return r.itemValue(name)
}

// Expanded returns the program of the run with the values of the templates in its command and its
// variables; nil without a program. Parameters of the run and secrets are no templates, and
// neither is the program of a run without a stored job.
func (r Run) Expanded() *spec.Program {
	if r.Work.Program == nil || r.JobID == "" {
		return r.Work.Program
	}
	p := *r.Work.Program
	p.Command = make([]string, len(r.Work.Program.Command))
	for i, argument := range r.Work.Program.Command {
		p.Command[i], _ = spec.Expand(argument, r.templateValue)
	}
	p.Env = maps.Clone(p.Env)
	for name, v := range p.Env {
		if _, given := r.Parameters[name]; !given && v.SecretRef == "" {
			v.Value, _ = spec.Expand(v.Value, r.templateValue)
			p.Env[name] = v
		}
	}
	return &p
}
