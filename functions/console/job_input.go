package console

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

	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// inputFields returns the fields of the inputs of a job, with their defaults.
func inputFields(inputs map[string]job.Input) Node {
	return Map(slices.Sorted(maps.Keys(inputs)), func(name string) Node {
		in, value := inputs[name], ""
		if in.Default != nil {
			value = in.Default.Text()
		}
		return inputField(name, in, value)
	})
}

// inputField returns the field of an input with a value, or the value if no field can have it.
func inputField(name string, in job.Input, value string) Node {
	required := in.Required != nil && *in.Required
	title := Group{
		label(short(60, name)), If(required, Span(Class("quiet"), Text(" required"))),
		If(in.Description != "", Span(Class("quiet"), Text(" "), bdi(short(300, in.Description)))),
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
	case !fits(value) || strings.Contains(value, "\n"):
		return Div(title, Code(Class("quiet"), Text(short(60, value))))
	case len(choices) > 0:
		option := func(text string) Node {
			return Option(If(text == value, Selected()), Value(text), Text(short(60, text)))
		}
		return Label(title, Select(append(field, If(in.Default == nil, Option(Value(""), Text("none"))), Map(choices, option))...))
	}
	kind := map[job.InputType]string{job.TypeInteger: "number", job.TypeNumber: "number", job.TypeDate: "date"}[in.Type]
	return Label(title, Input(append(field, Type(cmp.Or(kind, "text")), If(kind == "number", attr("step", "any")), Value(value))...))
}

// formInputs returns the values of the fields of inputs. An empty field has no value.
func formInputs(form url.Values) (map[string]json.RawMessage, error) {
	values := map[string]json.RawMessage{}
	for name, texts := range form {
		input, ok := strings.CutPrefix(name, "input.")
		if !ok || texts[0] == "" {
			continue
		}
		text, err := json.Marshal(formText(texts[0]))
		if err != nil {
			return nil, fmt.Errorf("cannot encode an input: %w", err)
		}
		values[input] = text
	}
	return values, nil
}

// inputText returns the value of an input of a run as a text.
func inputText(value json.RawMessage) string { return run.Value(value).Text() }
