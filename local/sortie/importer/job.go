package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/domain/job"
)

// Job is a converted job.
type Job struct {
	Definition job.Definition `json:"definition"`
	// Comments are sentences about the job: its origin and the comments of the source.
	Comments []string `json:"comments"`
	// Lost are the fields of the source without a counterpart: the path, and the value or the
	// reason.
	Lost []string `json:"lost"`
	line int
}

func (j *Job) lose(format string, args ...any) { j.Lost = append(j.Lost, fmt.Sprintf(format, args...)) }

// unique numbers the id of the job if an earlier job has it.
func (j *Job) unique(ids map[string]int) {
	base := j.Definition.ID
	for id := base; ; {
		if ids[id]++; ids[id] == 1 {
			j.Definition.ID = id
			return
		}
		suffix := fmt.Sprintf("-%d", ids[base])
		if id != base {
			ids[base]++
		}
		id = strings.TrimRight(base[:min(len(base), maxID-len(suffix))], "-") + suffix
	}
}

// settle moves the fields that Sortie refuses to Lost, with the reasons. The error is about a
// field that a job needs.
func (j *Job) settle() *Error {
	d := &j.Definition
	d.Command = slices.Clone(d.Command) // other jobs of the file may share it
	for i, argument := range d.Command {
		d.Command[i] = literal(argument)
	}
	for name, v := range d.Env {
		v.Value = literal(v.Value)
		d.Env[name] = v
	}
	if len(d.Schedules) == 1 && strings.HasPrefix(d.Schedules[0], "@every ") { // a list has none
		if _, err := job.ParseSchedule(d.Schedules[0], ""); err == nil {
			d.Schedule, d.Schedules, d.TimeZone = d.Schedules[0], nil, ""
		}
	}
	for problems := d.Validate(nil); len(problems) > 0; problems = d.Validate(nil) {
		p, number := problems[0], 0
		if _, err := fmt.Sscanf(p.Field, "schedules.%d", &number); err == nil {
			j.loseSchedule(number, p.Problem)
		} else if value, ok := remove(d, p.Field); ok {
			j.lose("%s: %s: %s", p.Field, value, p.Problem)
		} else {
			return wrong(j.line, "%s: %s", p.Field, p.Problem)
		}
	}
	if len(d.Schedules) == 1 {
		d.Schedule, d.Schedules = d.Schedules[0], nil
	}
	text, err := j.YAML()
	if err != nil {
		return wrong(j.line, "%v", err)
	}
	if _, problems := job.Parse(text, nil); len(problems) > 0 { // it is too long, or too much like nested lists
		return wrong(j.line, "job %s: its file has a problem: %v", d.ID, problems[0])
	}
	return nil
}

// literal returns a text that is no template.
func literal(text string) string { return strings.ReplaceAll(text, "{{", "{{{{") }

// remove removes an optional field: a variable, or what has it at the top level. It returns
// the value as JSON.
func remove(d *job.Definition, path string) (value string, ok bool) {
	top, name, _ := strings.Cut(path, ".")
	all := reflect.ValueOf(d).Elem()
	for i := range all.NumField() {
		field := all.Field(i)
		tag, _, _ := strings.Cut(all.Type().Field(i).Tag.Get("json"), ",")
		if tag != top || tag == "id" || tag == "image" || tag == "command" || tag == "input" || field.IsZero() {
			continue
		}
		removed := field.Interface()
		if field.Kind() == reflect.Map && name != "" {
			key := reflect.ValueOf(name)
			if !field.MapIndex(key).IsValid() {
				return "", false
			}
			removed = field.MapIndex(key).Interface()
			field.SetMapIndex(key, reflect.Value{})
		}
		if field.Kind() != reflect.Map || name == "" || field.Len() == 0 {
			field.SetZero()
		}
		text, err := json.Marshal(removed)
		return shown(string(text)), err == nil
	}
	return "", false
}

// YAML returns the job file: the comments and the definition. If the encoder of YAML changes
// the definition or writes what a terminal interprets, the definition is JSON.
func (j Job) YAML() ([]byte, error) {
	var text bytes.Buffer
	for _, line := range j.Comments {
		fmt.Fprintln(&text, "# "+display.Clean(line))
	}
	if len(j.Lost) > 0 {
		fmt.Fprintln(&text, "# Without a counterpart, or with another meaning:")
	}
	for _, line := range j.Lost {
		fmt.Fprintln(&text, "#   "+display.Clean(line))
	}
	document, err := j.Definition.Canonical()
	if err != nil {
		return nil, err
	}
	var tree yaml.MapSlice
	if err := yaml.UnmarshalWithOptions(document, &tree, yaml.UseOrderedMap()); err != nil {
		return nil, fmt.Errorf("cannot read the definition: %w", err)
	}
	written, err := yaml.MarshalWithOptions(tree, yaml.UseLiteralStyleIfMultiline(true))
	again, problems := job.Parse(written, nil)
	if err != nil || len(problems) > 0 || !reflect.DeepEqual(again, j.Definition) || !bytes.Equal(display.Escape(written), written) {
		var indented bytes.Buffer
		if err := json.Indent(&indented, document, "", "  "); err != nil {
			return nil, fmt.Errorf("cannot write the definition: %w", err)
		}
		written = append(display.EscapeJSON(indented.Bytes()), '\n')
	}
	text.Write(written)
	return text.Bytes(), nil
}
