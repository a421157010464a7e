package openai

import (
	"encoding/json"
	"fmt"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/port"
)

// responseFormat is the member text.format of a response. It is flat, unlike that of a chat.
type responseFormat struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	Strict      *bool           `json:"strict"`
}

func (f *responseFormat) format() (port.Format, error) {
	switch {
	case f == nil || f.Type == port.FormatText:
		return port.Format{}, nil
	case f.Type == "":
		return port.Format{}, fault.Invalid("text.format.type", "missing type, want text, json_object or json_schema")
	case f.Type != port.FormatSchema:
		return port.Format{Type: f.Type}, nil // it is checked later
	}
	found := port.Format{Type: f.Type, Name: f.Name, Description: f.Description, Strict: f.Strict}
	if given(f.Schema) {
		found.Schema = f.Schema
	}
	return found, nil
}

// responseTool is a tool in the wire format of a response.
type responseTool struct {
	Type string `json:"type"`
	flatFunction
}

// flatFunction is a function whose members are those of its tool.
type flatFunction = function

// responseOptions returns the options of a response about tools, its format and its reasoning.
func responseOptions(t tools, f *responseFormat, effort json.RawMessage) (o port.GenerationOptions, err error) {
	list, err := decodeEach[responseTool]("tools", "tool", t.Tools)
	if err != nil {
		return o, err
	}
	for i, each := range list {
		if each.Type != typeFunction {
			return o, unsupported(fmt.Sprintf("tools.%d.type", i), typeFunction)
		}
		o.Tools = append(o.Tools, each.tool())
	}
	err = t.choose(&o, func(value json.RawMessage) (string, bool) {
		var choice struct {
			Type string `json:"type"`
			Name string `json:"name"`
		}
		err := json.Unmarshal(value, &choice)
		return choice.Name, err == nil && choice.Type == typeFunction
	})
	if err != nil {
		return o, err
	}
	if o.Format, err = f.format(); err != nil {
		return o, err
	}
	if given(effort) && json.Unmarshal(effort, &o.ReasoningEffort) != nil {
		return o, fault.Invalid("reasoning.effort", "malformed effort, want a text")
	}
	return o, nil
}

// inputItem is an item of the member input: a message, a call of a function, or its output.
type inputItem struct {
	Type string `json:"type"`
	message
	CallID    string          `json:"call_id"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
}

// inputOf decodes the member input: a string, which becomes a message of the user, or an array
// of items. It skips reasoning items. Faults: InvalidRequest and InvalidParams with the path.
func inputOf(value json.RawMessage) ([]port.Message, error) {
	var text string
	if given(value) && json.Unmarshal(value, &text) == nil {
		if text == "" {
			return nil, fault.Invalid("input", "empty input, want a text or messages")
		}
		return []port.Message{{Role: "user", Content: text}}, nil
	}
	var elements []json.RawMessage
	if !given(value) || json.Unmarshal(value, &elements) != nil || len(elements) == 0 {
		return nil, fault.Invalid("input", "missing or malformed input, want a text or an array of messages")
	}
	items, err := decodeEach[inputItem]("input", "message", value)
	if err != nil {
		return nil, err
	}
	var found []port.Message
	for i, item := range items {
		if found, err = item.addTo(found, fmt.Sprintf("input.%d", i)); err != nil {
			return nil, err
		}
	}
	if len(found) == 0 {
		return nil, fault.Invalid("input", "no message, want at least one")
	}
	return found, nil
}

// addTo appends an item to messages. Calls of functions belong to the message of the assistant
// before them. at is the path of the item.
func (item inputItem) addTo(found []port.Message, at string) ([]port.Message, error) {
	switch item.Type {
	case "", itemMessage:
		m, err := item.read(at + ".")
		return append(found, m), err
	case itemReasoning: // from an earlier response; models do not get it again
		return found, nil
	case itemCall:
		var name string
		if !given(item.Name) || json.Unmarshal(item.Name, &name) != nil {
			return nil, fault.Invalid(at+".name", "missing or malformed name of a function")
		}
		switch {
		case !inference.ToolName.MatchString(name):
			return nil, fault.Invalid(at+".name", "malformed name %.80q, want 1 to 64 letters, digits, '_', '-' and '.'", name)
		case item.CallID == "":
			return nil, fault.Invalid(at+".call_id", "missing id of a call")
		case item.Arguments != "" && !json.Valid([]byte(item.Arguments)):
			return nil, fault.Invalid(at+".arguments", "the arguments are no JSON, want the text of a JSON object")
		}
		if n := len(found); n == 0 || found[n-1].Role != "assistant" {
			found = append(found, port.Message{Role: "assistant"})
		}
		last := &found[len(found)-1]
		last.ToolCalls = append(last.ToolCalls, port.ToolCall{ID: item.CallID, Name: name, Arguments: item.Arguments})
		return found, nil
	case itemCallOutput:
		if item.CallID == "" {
			return nil, fault.Invalid(at+".call_id", "missing id, want that of the call that the output answers")
		}
		output, err := outputOf(at+".output", item.Output)
		return append(found, port.Message{Role: "tool", ToolCallID: item.CallID, Content: output}), err
	}
	return nil, unsupported(at+".type", "message, reasoning, function_call or function_call_output")
}

// outputOf decodes the output of a function. Fault: InvalidParams for an image, which the templates of
// models have in messages of users alone.
func outputOf(field string, value json.RawMessage) (string, error) {
	var parts []contentPart
	if json.Unmarshal(value, &parts) == nil {
		for i, p := range parts {
			if p.Type == "input_image" || p.Type == "image_url" {
				return "", unsupported(fmt.Sprintf("%s.%d", field, i), "an output without images, and the image in a message of the user: the templates of models have none in outputs")
			}
		}
	}
	return contentOf(field, value)
}
