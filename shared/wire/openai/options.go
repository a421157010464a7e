package openai

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/port"
)

const typeFunction = "function"

// tuning contains members of the sampling. Those that OpenAI's API lacks have the names of vLLM.
type tuning struct {
	LogitBias         map[string]float64 `json:"logit_bias"`
	FrequencyPenalty  *float64           `json:"frequency_penalty"`
	PresencePenalty   *float64           `json:"presence_penalty"`
	RepetitionPenalty *float64           `json:"repetition_penalty"`
	MinP              *float64           `json:"min_p"`
	TopK              *int               `json:"top_k"`
}

// sampling returns the parameters. A penalty of 0 is that of every engine.
func (t tuning) sampling() port.Sampling {
	s := port.Sampling{FrequencyPenalty: t.FrequencyPenalty, PresencePenalty: t.PresencePenalty, RepetitionPenalty: t.RepetitionPenalty, MinP: t.MinP, TopK: t.TopK}
	if s.FrequencyPenalty != nil && *s.FrequencyPenalty == 0 {
		s.FrequencyPenalty = nil
	}
	if s.PresencePenalty != nil && *s.PresencePenalty == 0 {
		s.PresencePenalty = nil
	}
	if len(t.LogitBias) > 0 {
		s.LogitBias = t.LogitBias
	}
	return s
}

// takeExtras removes the members of engines' own requests from a body, and returns those with a
// value.
func takeExtras(members map[string]json.RawMessage) (extra map[string]json.RawMessage) {
	for _, name := range inference.Extras() {
		value, sent := members[name]
		delete(members, name)
		if !sent || !given(value) {
			continue
		}
		if extra == nil {
			extra = map[string]json.RawMessage{}
		}
		extra[name] = value
	}
	return extra
}

// optionsOrNil returns nil for options without a value.
func optionsOrNil(o port.GenerationOptions) *port.GenerationOptions {
	if reflect.ValueOf(o).IsZero() {
		return nil
	}
	return &o
}

// chatOptions contains the members of a chat about its template.
type chatOptions struct {
	ReasoningEffort *string         `json:"reasoning_effort"`
	TemplateKwargs  json.RawMessage `json:"chat_template_kwargs"`
}

func (c chatOptions) apply(o *port.GenerationOptions) {
	if c.ReasoningEffort != nil {
		o.ReasoningEffort = *c.ReasoningEffort
	}
	if filled(c.TemplateKwargs) {
		o.TemplateKwargs = c.TemplateKwargs
	}
}

// Options decodes the members of a JSON object that have the names and the form of those of a chat
// completion. extra are members of the engine's own request. It returns nil for none. Faults:
// InvalidRequest and InvalidParams with the field.
func Options(body []byte, extra map[string]json.RawMessage) (*port.GenerationOptions, error) {
	var in struct {
		tuning
		tools
		chatOptions
		probabilities

		ResponseFormat *format `json:"response_format"`
	}
	members, err := membersIn(body)
	if err != nil {
		return nil, err
	}
	known := membersOf(reflect.TypeOf(in))
	maps.DeleteFunc(members, func(name string, _ json.RawMessage) bool { return !slices.Contains(known, name) })
	if err := parseMembers(members, &in); err != nil {
		return nil, err
	}
	var o port.GenerationOptions
	if err := in.tools.apply(&o); err != nil {
		return nil, err
	}
	if o.Format, err = in.ResponseFormat.format("response_format"); err != nil {
		return nil, err
	}
	in.chatOptions.apply(&o)
	if err := in.probabilities.apply(&o); err != nil {
		return nil, err
	}
	o.Sampling = in.tuning.sampling()
	for name, value := range extra {
		if !given(value) {
			continue
		}
		if o.Extra == nil {
			o.Extra = map[string]json.RawMessage{}
		}
		o.Extra[name] = value
	}
	return optionsOrNil(o), nil
}

// tools contains the members about tools of a chat.
type tools struct {
	Tools             json.RawMessage `json:"tools"`
	ToolChoice        json.RawMessage `json:"tool_choice"`
	ParallelToolCalls *bool           `json:"parallel_tool_calls"`
}

// tool is a tool in the wire format of a chat.
type tool struct {
	Type     string    `json:"type"`
	Function *function `json:"function"`
}

// function is a function in the wire format.
type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict"`
}

func (f function) tool() port.Tool {
	t := port.Tool{Name: f.Name, Description: f.Description, Strict: f.Strict}
	if given(f.Parameters) {
		t.Parameters = f.Parameters
	}
	return t
}

// apply sets the tools of a request. Without tools, the other members have no effect, unless they
// require a call.
func (t tools) apply(o *port.GenerationOptions) error {
	list, err := decodeEach[tool]("tools", "tool", t.Tools)
	if err != nil {
		return err
	}
	for i, each := range list {
		at := fmt.Sprintf("tools.%d", i)
		switch {
		case each.Type != typeFunction:
			return unsupported(at+".type", typeFunction)
		case each.Function == nil:
			return fault.Invalid(at+".function", "missing function of a tool")
		}
		o.Tools = append(o.Tools, each.Function.tool())
	}
	return t.choose(o, func(value json.RawMessage) (name string, ok bool) {
		var choice struct {
			Type     string `json:"type"`
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		}
		err := json.Unmarshal(value, &choice)
		return choice.Function.Name, err == nil && choice.Type == typeFunction
	})
}

// choose sets the choice of tools. named reads the choice of one function.
func (t tools) choose(o *port.GenerationOptions, named func(json.RawMessage) (string, bool)) error {
	if given(t.ToolChoice) {
		if json.Unmarshal(t.ToolChoice, &o.ToolChoice.Mode) != nil {
			name, ok := named(t.ToolChoice)
			if !ok {
				return unsupported("tool_choice", "none, auto, required or a function")
			}
			o.ToolChoice = port.ToolChoice{Mode: port.ToolsFunction, Function: name}
		} else if o.ToolChoice.Mode == port.ToolsFunction {
			return unsupported("tool_choice", "none, auto, required or an object with a function")
		}
	}
	if len(o.Tools) > 0 {
		o.ParallelToolCalls = t.ParallelToolCalls
	} else if mode := o.ToolChoice.Mode; mode == port.ToolsNone || mode == port.ToolsAuto {
		o.ToolChoice = port.ToolChoice{}
	}
	return nil
}

// format is the requested format of an answer.
type format struct {
	Type       string `json:"type"`
	JSONSchema *struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Schema      json.RawMessage `json:"schema"`
		Strict      *bool           `json:"strict"`
	} `json:"json_schema"`
}

// format returns the format. field is that of the member.
func (f *format) format(field string) (port.Format, error) {
	switch {
	case f == nil || f.Type == port.FormatText:
		return port.Format{}, nil
	case f.Type == "":
		return port.Format{}, fault.Invalid(field+".type", "missing type, want text, json_object or json_schema")
	case f.Type != port.FormatSchema || f.JSONSchema == nil:
		return port.Format{Type: f.Type}, nil // it is checked later
	}
	s := f.JSONSchema
	found := port.Format{Type: f.Type, Name: s.Name, Description: s.Description, Strict: s.Strict}
	if given(s.Schema) {
		found.Schema = s.Schema
	}
	return found, nil
}
