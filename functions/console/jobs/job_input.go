package jobs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// inputFields returns the fields of the inputs of a job, with their defaults.
func inputFields(inputs map[string]job.Input) Node {
	return Map(slices.Sorted(maps.Keys(inputs)), func(name string) Node {
		in, value := inputs[name], ""
		if in.Default != nil {
			value = in.Default.Text()
		}
		return InputField(name, in, value)
	})
}

// InputField returns the field of an input with a value, or the value if no field can have it.
func InputField(name string, in job.Input, value string) Node {
	required := in.Required != nil && *in.Required
	title := Group{
		ui.FieldName(ui.Short(60, name)), If(required, Span(Class("quiet"), Text(" required"))),
		If(in.Description != "", Span(Class("quiet"), Text(" "), ui.Bdi(ui.Short(300, in.Description)))),
	}
	field := []Node{Name("input." + name), If(required, Required())}
	choices := make([]string, 0, len(in.Choices))
	for _, choice := range in.Choices {
		choices = append(choices, choice.Text())
	}
	if in.Type == job.TypeBoolean && len(choices) == 0 {
		choices = []string{"true", "false"}
	}
	switch {
	case !Fits(value) || strings.Contains(value, "\n"):
		return Div(title, Code(Class("quiet"), Text(ui.Short(60, value))))
	case len(choices) > 0:
		option := func(text string) Node {
			return Option(If(text == value, Selected()), Value(text), Text(ui.Short(60, text)))
		}
		return Label(title, Select(append(field, If(in.Default == nil, Option(Value(""), Text("none"))), Map(choices, option))...))
	}
	kind := map[job.InputType]string{job.TypeInteger: "number", job.TypeNumber: "number", job.TypeDate: "date"}[in.Type]
	return Label(title, Input(append(field, Type(cmp.Or(kind, "text")), If(kind == "number", ui.Attribute("step", "any")), Value(value))...))
}

// FormInputs returns the values of the fields of inputs. An empty field has no value.
func FormInputs(form url.Values) (map[string]json.RawMessage, error) {
	values := map[string]json.RawMessage{}
	for name, texts := range form {
		input, ok := strings.CutPrefix(name, "input.")
		if !ok || texts[0] == "" {
			continue
		}
		text, err := json.Marshal(FormText(texts[0]))
		if err != nil {
			return nil, fmt.Errorf("cannot encode an input: %w", err)
		}
		values[input] = text
	}
	return values, nil
}

// InputText returns the value of an input of a run as a text.
func InputText(value json.RawMessage) string { return spec.Value(value).Text() }
