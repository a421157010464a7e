package run

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"strings"
	"time"
)

// Value is the value of an input of a run: the JSON of a string, a number or a boolean.
type Value string

// TextValue returns the value of a string.
func TextValue(text string) Value {
	var to bytes.Buffer
	encoder := json.NewEncoder(&to)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) //nolint:errchkjson // a string always has a JSON form
	return Value(bytes.TrimSpace(to.Bytes()))
}

// MarshalJSON returns the value.
func (v Value) MarshalJSON() ([]byte, error) { return []byte(v), nil }

// UnmarshalJSON stores the value.
func (v *Value) UnmarshalJSON(text []byte) error {
	*v = Value(text)
	return nil
}

// Text returns the value as text: that of a string, or the JSON of a number or a boolean.
func (v Value) Text() string {
	var text string
	if json.Unmarshal([]byte(v), &text) != nil {
		return string(v)
	}
	return text
}

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

// The names that a template can have, beside those of inputs, which begin with InputPrefix.
const (
	ScheduledName = "scheduledAt"
	RunName       = "runId"
	InputPrefix   = "inputs."
)

// expandedLimit is the size in bytes at which Expand stops.
const expandedLimit = 256 << 10

var letterFirst = regexp.MustCompile(`^ *[A-Za-z_]`)

// Expand replaces each {{name}} in a template by the value of the name, and {{{{ by a literal {{.
// A {{ that no letter follows stays as it is. Values are not expanded again. unknown are the names
// without a value, which stay as they are. An expansion stops at 256 KiB.
func Expand(template string, value func(name string) (string, bool)) (text string, unknown []string) {
	if !strings.Contains(template, "{{") {
		return template, nil
	}
	var b strings.Builder
	for b.Len() < expandedLimit {
		before, rest, found := strings.Cut(template, "{{")
		b.WriteString(before)
		if !found {
			break
		}
		if after, ok := strings.CutPrefix(rest, "{{"); ok {
			b.WriteString("{{")
			template = after
			continue
		}
		if !letterFirst.MatchString(rest) {
			b.WriteString("{{")
			template = rest
			continue
		}
		name, after, closed := strings.Cut(rest, "}}")
		v, ok := "", false
		if closed {
			v, ok = value(strings.TrimSpace(name))
		}
		if !ok {
			v = template[len(before) : len(template)-len(after)]
			unknown = append(unknown, strings.TrimSpace(name))
		}
		b.WriteString(v)
		template = after
	}
	return b.String(), unknown
}

// templateValue returns the value of a name in a template. An input without a value is empty.
func (r Run) templateValue(name string) (string, bool) {
	switch {
	case name == ScheduledName:
		return r.Scheduled().Format(time.RFC3339), true
	case name == RunName:
		return r.ID, true
	case strings.HasPrefix(name, InputPrefix):
		return r.Inputs[strings.TrimPrefix(name, InputPrefix)].Text(), true
	}
	return "", false
}

// Expanded returns the program of the run with the values of the templates in its command and its
// variables; nil without a program. Parameters of the run and secrets are no templates, and
// neither is the program of a run without a stored job.
func (r Run) Expanded() *Program {
	if r.Work.Program == nil || r.JobID == "" {
		return r.Work.Program
	}
	p := *r.Work.Program
	p.Command = make([]string, len(r.Work.Program.Command))
	for i, argument := range r.Work.Program.Command {
		p.Command[i], _ = Expand(argument, r.templateValue)
	}
	p.Env = maps.Clone(p.Env)
	for name, v := range p.Env {
		if _, given := r.Parameters[name]; !given && v.SecretRef == "" {
			v.Value, _ = Expand(v.Value, r.templateValue)
			p.Env[name] = v
		}
	}
	return &p
}
