package importer

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// requested matches the expression of an input of workflow_dispatch, of an axis of the matrix, or of
// a variable.
var requested = regexp.MustCompile(`\$\{\{\s*((?:github\.event\.)?inputs|matrix|env)\.([A-Za-z_][A-Za-z0-9_-]*)\s*\}\}`)

// inputTypes are the types of inputs by those of workflow_dispatch.
var inputTypes = map[string]job.InputType{
	"": "", "string": "", "choice": "", "number": job.TypeNumber, "boolean": job.TypeBoolean,
}

// inputNamed returns the name of an input in a job file, which has no hyphen.
func inputNamed(name string) string { return strings.ReplaceAll(name, "-", "_") }

// dispatch reads the inputs of workflow_dispatch.
func (w *workflow) dispatch(n *node) {
	w.inputs = map[string]job.Input{}
	for _, m := range n.get("inputs").all(kindObject) {
		if m.value.kind == kindNull {
			w.inputs[inputNamed(m.name)] = job.Input{}
			continue
		}
		in, problem := input(m.value)
		name := inputNamed(m.name)
		if _, twice := w.inputs[name]; twice {
			problem = "another input has this name"
		}
		if problem == "" {
			problem = refusal(name, in)
		}
		if problem != "" {
			w.lost = append(w.lost, m.value.path+": "+problem)
			m.value.finish()
			continue
		}
		w.inputs[name] = in
	}
}

// input converts an input. An input with a default is not required: it is never missing.
func input(n *node) (in job.Input, problem string) {
	kind, known := inputTypes[n.get("type").str()]
	if !known {
		return in, "the type " + shown(n.get("type").str()) + " has no counterpart"
	}
	in.Type = kind
	in.Description = limit.Cut(display.Clean(n.get("description").str()), 1000)
	value := func(text string) spec.Value {
		if kind == "" {
			return spec.TextValue(text)
		}
		return spec.Value(text)
	}
	for _, option := range n.get("options").strs() {
		in.Choices = append(in.Choices, spec.TextValue(option))
	}
	if standard := n.get("default"); standard != nil {
		in.Default = new(value(standard.str()))
	}
	if n.get("required").is("true") && in.Default == nil {
		in.Required = new(true)
	}
	return in, ""
}

// refusal returns why a job file cannot declare the input.
func refusal(name string, in job.Input) string {
	return refusalOf(job.Definition{ID: "x", Image: "x", Inputs: map[string]job.Input{name: in}}, "inputs")
}

// refusalOf returns the first problem of a definition in a field, or "".
func refusalOf(d job.Definition, field string) string {
	for _, p := range d.Validate(nil) {
		if strings.HasPrefix(p.Field, field) {
			return p.Problem
		}
	}
	return ""
}

// declare gives a job the inputs of the workflow. Firings have no value for a required one.
func (w *workflow) declare(j *Job) {
	if len(w.inputs) == 0 {
		return
	}
	j.Definition.Inputs = make(map[string]job.Input, len(w.inputs))
	for _, name := range slices.Sorted(maps.Keys(w.inputs)) {
		in := w.inputs[name]
		if in.Required != nil && j.Definition.Scheduled() {
			j.lose("on.workflow_dispatch.inputs.%s.required: the schedule has no value for it", name)
			in.Required = nil
		}
		j.Definition.Inputs[name] = in
	}
}

// fill replaces the expressions of inputs, axes and variables in a script by the variables with
// their values.
func (w *workflow) fill(script string, axes map[string][]spec.Value) string {
	return requested.ReplaceAllStringFunc(script, func(found string) string {
		parts := requested.FindStringSubmatch(found)
		name := inputNamed(parts[2])
		_, input := w.inputs[name]
		switch _, axis := axes[name]; {
		case parts[1] == "matrix" && axis:
			return "${" + contract.MatrixPrefix + name + "}"
		case parts[1] == "env" && name == parts[2]:
			return "${" + name + "}"
		case strings.HasSuffix(parts[1], "inputs") && input:
			return "${" + contract.InputPrefix + name + "}"
		}
		return found
	})
}

// word returns a text with expressions that fill replaces as one word of a shell. ok is false if it
// has other expressions.
func (w *workflow) word(text string, axes map[string][]spec.Value) (word string, ok bool) {
	at := 0
	for _, found := range requested.FindAllStringIndex(text, -1) {
		variable := w.fill(text[found[0]:found[1]], axes)
		if strings.Contains(variable, "{{") {
			return "", false
		}
		if text[at:found[0]] != "" {
			word += quoted(text[at:found[0]])
		}
		word, at = word+`"`+variable+`"`, found[1]
	}
	if rest := text[at:]; rest != "" || word == "" {
		word += quoted(rest)
	}
	return word, !expression.MatchString(requested.ReplaceAllString(text, ""))
}
