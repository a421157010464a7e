package job

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/sensor"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// Input declares an input of the runs of a job.
type Input struct {
	Type        InputType `json:"type,omitempty"`
	Description string    `json:"description,omitempty"`
	// Required: each request needs a value. It has no default.
	Required *bool `json:"required,omitempty"`
	// Default is the value without one in the request; nil for none.
	Default *spec.Value `json:"default,omitempty"`
	// Choices are the allowed values; empty allows all of the type.
	Choices []spec.Value `json:"choices,omitempty"`
}

// InputType is the type of an input; empty means TypeString.
type InputType string

// The types of inputs.
const (
	TypeString  InputType = "string"
	TypeInteger InputType = "integer"
	TypeNumber  InputType = "number"
	TypeBoolean InputType = "boolean"
	TypeDate    InputType = "date"
	TypeTime    InputType = "time"
)

// The limits of inputs: their number, the choices of one, and the length of its description.
const (
	maxInputs      = 100
	maxChoices     = 100
	maxDescription = 1000
)

var inputName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// wants says what a value of each type is, for an error.
var wants = map[InputType]string{
	TypeString: "a string", TypeInteger: "an integer from -9007199254740991 to 9007199254740991", TypeNumber: "a number",
	TypeBoolean: "true or false", TypeDate: "a date such as 2027-03-01", TypeTime: "a time such as 2027-03-01T08:00:00Z",
}

// kind returns the type with its default.
func (i Input) kind() InputType { return cmp.Or(i.Type, TypeString) }

// read returns a value in the normal form of the type. For other types than strings it may be a
// text with the value. problem is empty for a valid value.
func (i Input) read(v spec.Value) (normal spec.Value, problem string) {
	text := v.Text()
	isText := strings.HasPrefix(string(v), `"`)
	ok := false
	switch i.kind() {
	case TypeString:
		normal, ok = v, isText
	case TypeInteger:
		n, err := decimal(text)
		const exact = 1<<53 - 1
		normal, ok = spec.Value(strconv.FormatInt(int64(n), 10)), err == nil && n == math.Trunc(n) && math.Abs(n) <= exact
	case TypeNumber:
		n, err := decimal(text)
		var form []byte
		if err == nil {
			form, err = json.Marshal(n) // an infinity has none
		}
		normal, ok = spec.Value(form), err == nil
	case TypeBoolean:
		normal, ok = spec.Value(text), text == "true" || text == "false"
	case TypeDate, TypeTime:
		layout := map[InputType]string{TypeDate: time.DateOnly, TypeTime: time.RFC3339}[i.kind()]
		_, err := time.Parse(layout, text)
		normal, ok = v, isText && err == nil
	}
	switch {
	case !ok:
		return "", fmt.Sprintf("%s, want %s", limit.Cut(string(v), nameLimit), i.want())
	case strings.Contains(text, "\x00"):
		return "", "value with a NUL, want text"
	}
	if len(i.Choices) == 0 {
		return normal, ""
	}
	for _, choice := range i.Choices {
		if allowed, problem := (Input{Type: i.Type}).read(choice); problem == "" && allowed == normal {
			return normal, ""
		}
	}
	return "", fmt.Sprintf("%s, want %s", limit.Cut(string(v), nameLimit), i.want())
}

// decimal reads a decimal number, without infinities.
func decimal(text string) (float64, error) {
	if strings.ContainsAny(text, "xXpPnN_") {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseFloat(text, 64) //nolint:wrapcheck // callers only look for an error
}

// want says what a valid value is.
func (i Input) want() string {
	if len(i.Choices) == 0 {
		return wants[i.kind()]
	}
	texts := make([]string, 0, len(i.Choices))
	for _, choice := range i.Choices[:min(len(i.Choices), 10)] {
		texts = append(texts, limit.Cut(string(choice), nameLimit))
	}
	if len(i.Choices) > len(texts) {
		texts = append(texts, "...")
	}
	return "one of " + strings.Join(texts, ", ")
}

// InputValues returns the values of the inputs of a run: the given ones, or else the defaults.
func (d Definition) InputValues(given map[string]spec.Value) (map[string]spec.Value, []Problem) {
	p := &problems{}
	var values map[string]spec.Value
	size := 0
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, ok := d.Inputs[name]; ok {
			continue
		}
		at := join("inputs", limit.Cut(name, nameLimit))
		names := slices.Sorted(maps.Keys(d.Inputs))
		switch meant := limit.Nearest(name, names); {
		case len(names) == 0:
			p.bad(at, "unknown input, the job has none; leave it out")
		case meant != "":
			p.bad(at, "unknown input, did you mean %s?", meant)
		default:
			p.bad(at, "unknown input, want one of %s", strings.Join(names, ", "))
		}
	}
	for name, in := range d.Inputs {
		v, ok := given[name]
		if !ok && in.Default != nil {
			v, ok = *in.Default, true
		}
		if !ok {
			if in.Required != nil && *in.Required {
				p.bad(join("inputs", name), "missing value, want %s", in.want())
			}
			continue
		}
		normal, problem := in.read(v)
		if problem != "" {
			p.bad(join("inputs", name), "%s", problem)
			continue
		}
		if values == nil {
			values = map[string]spec.Value{}
		}
		values[name] = normal
		size += len(name) + len(normal)
	}
	if size > limit.Inputs {
		p.bad("inputs", "%d bytes of names and values, want at most %d; pass a file", size, limit.Inputs)
	}
	return values, p.sorted()
}

// CheckExpanded returns the problems of the program of a run with the values of its templates.
func CheckExpanded(r run.Run) []Problem {
	program, p := r.Expanded(), &problems{}
	if program == nil || len(r.Inputs) == 0 && r.Event == nil && r.Child == nil {
		return nil
	}
	for _, argument := range program.Command {
		if len(argument) > maxArgument {
			p.bad("inputs", "an argument of %d bytes with the values, want at most %d, which is the limit of Linux", len(argument), maxArgument)
			break
		}
	}
	env := make(map[string]Variable, len(program.Env))
	for name, v := range program.Env {
		env[name] = Variable(v)
		if length := len(name) + len("=") + len(v.Value); length > maxArgument {
			p.bad("inputs", "a variable %s of %d bytes with the values, want at most %d, which is the limit of Linux", name, length, maxArgument)
		}
	}
	validateSize("inputs", program.Command, env, p)
	return p.sorted()
}

// validateInputs checks the declarations of inputs.
func validateInputs(d Definition, adHoc bool, p *problems) {
	const field = "inputs"
	switch {
	case d.Inputs == nil:
		return
	case adHoc:
		p.addConflict(field, "a run without a stored job has no inputs; put the values into command and env")
	case d.Export != nil:
		p.addConflict(field, "no meaning with export; leave one out")
	case len(d.Inputs) > maxInputs:
		p.bad(field, "%d inputs, want at most %d", len(d.Inputs), maxInputs)
	}
	for name, in := range d.Inputs {
		at := join(field, limit.Cut(name, nameLimit))
		if !inputName.MatchString(name) {
			p.bad(at, "malformed name of an input, want 1 to 64 letters, digits and _, the first no digit")
		}
		in.validate(d, at, p)
	}
	if p.has(field) || len(p.found) > 0 {
		return
	}
	r := d.Run(spec.Policy{})
	_, problems := d.InputValues(r.Inputs)
	for _, problem := range append(problems, CheckExpanded(r)...) {
		if problem.Field == field {
			p.bad(field, "%s", problem.Problem)
		}
	}
}

func (i Input) validate(d Definition, at string, p *problems) {
	if len(i.Description) > maxDescription || !limit.Printable(i.Description) {
		p.bad(join(at, "description"), "malformed description, want at most %d bytes without control characters", maxDescription)
	}
	if _, ok := wants[i.kind()]; !ok {
		types := []InputType{TypeString, TypeInteger, TypeNumber, TypeBoolean, TypeDate, TypeTime}
		p.bad(join(at, "type"), "unknown type %q, want one of %s", limit.Cut(string(i.Type), nameLimit), list(types))
		return
	}
	if len(i.Choices) > maxChoices {
		p.bad(join(at, "choices"), "%d choices, want at most %d", len(i.Choices), maxChoices)
	}
	for n, choice := range i.Choices {
		if _, problem := (Input{Type: i.Type}).read(choice); problem != "" {
			p.bad(join(at, fmt.Sprintf("choices.%d", n)), "%s", problem)
		}
	}
	required := i.Required != nil && *i.Required
	switch {
	case i.Default != nil && required:
		p.addConflict(join(at, "required"), "an input with a default is never missing; leave one out")
	case required && d.Scheduled():
		p.addConflict(join(at, "required"), "the schedule has no value for it; add a default, or leave the schedule out")
	case required && d.Sensor != nil:
		p.addConflict(join(at, "required"), "an item of the sensor has no value for it; add a default")
	case required && len(d.After) > 0:
		p.addConflict(join(at, "required"), "a run after other jobs has no value for it; add a default")
	}
	if i.Default != nil {
		if _, problem := i.read(*i.Default); problem != "" {
			p.bad(join(at, "default"), "%s", problem)
		}
	}
}

// validateTemplates checks the templates in the command and the variables.
func validateTemplates(d Definition, p *problems) {
	check := func(field, text string) {
		_, unknown := spec.Expand(text, func(name string) (string, bool) {
			input, ok := strings.CutPrefix(name, spec.InputPrefix)
			if attribute, of := strings.CutPrefix(name, spec.EventPrefix); of {
				_, known := sensor.Event{}.Attribute(attribute)
				return "", known && d.Sensor != nil
			}
			if !ok {
				return "", slices.Contains(d.templateNames(), name)
			}
			_, ok = d.Inputs[input]
			return "", ok
		})
		for _, name := range unknown {
			want := d.templateNames()
			for _, input := range slices.Sorted(maps.Keys(d.Inputs)) {
				want = append(want, spec.InputPrefix+input)
			}
			if d.Sensor != nil {
				for _, attribute := range sensor.Attributes() {
					want = append(want, spec.EventPrefix+attribute)
				}
			}
			p.bad(field, "unknown name in {{%s}}, want one of %s, or {{{{ for a literal {{", limit.Cut(name, nameLimit), strings.Join(want, ", "))
		}
	}
	for i, argument := range d.Command {
		check(fmt.Sprintf("command.%d", i), argument)
	}
	for name, v := range d.Env {
		check(join("env", limit.Cut(name, nameLimit)), v.Value)
	}
}

// FitInputs returns the values of a run of an earlier definition for this one. ok is false if they
// do not fit. Inputs that this definition lacks are left out.
func (d Definition) FitInputs(before map[string]spec.Value) (values map[string]spec.Value, ok bool) {
	given := maps.Clone(before)
	maps.DeleteFunc(given, func(name string, _ spec.Value) bool { _, declared := d.Inputs[name]; return !declared })
	values, problems := d.InputValues(given)
	return values, len(problems) == 0
}
