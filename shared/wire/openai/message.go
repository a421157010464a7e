package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// message is a message in the wire format.
type message struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  json.RawMessage `json:"tool_calls"`
	ToolCallID *string         `json:"tool_call_id"`
	Name       json.RawMessage `json:"name"`
}

// toolCall is a call of a tool in the wire format.
type toolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// decodeEach decodes the array in the member field into values of T. noun names an element. Fault:
// InvalidRequest with the path of the element, such as messages.1.
func decodeEach[T any](field, noun string, value json.RawMessage) ([]T, error) {
	var elements []json.RawMessage
	if given(value) && json.Unmarshal(value, &elements) != nil {
		return nil, fault.Invalid(field, "malformed %s, want an array of %ss", field, noun)
	}
	found := make([]T, len(elements))
	for i, element := range elements {
		at := fmt.Sprintf("%s.%d", field, i)
		if !given(element) {
			return nil, fault.Invalid(at, "%s is null, want a %s", at, noun)
		}
		err := json.Unmarshal(element, &found[i])
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
			at += "." + strings.TrimPrefix(strings.TrimPrefix(wrong.Field, "message."), "flatFunction.")
			return nil, fault.Invalid(at, "%s is of type %.40s, want %s", at, wrong.Value, fault.Kind(wrong.Type))
		}
		if err != nil {
			return nil, fault.Invalid(at, "malformed %s, want an object", noun)
		}
	}
	return found, nil
}

// messages converts the messages of the member field. Faults: InvalidRequest and InvalidParams
// with the path of the member.
func messages(field string, in []message) ([]port.Message, error) {
	found := make([]port.Message, len(in))
	for i, m := range in {
		var err error
		if found[i], err = m.read(fmt.Sprintf("%s.%d.", field, i)); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// read converts a message. at is the prefix of its members in faults, such as "messages.0.".
// The role developer becomes system.
func (m message) read(at string) (found port.Message, err error) {
	switch found.Role = m.Role; m.Role {
	case "system", "user", "assistant", "tool":
	case "developer":
		found.Role = "system"
	default:
		return found, fault.Invalid(at+"role", "unsupported role %.40q, want system, developer, user, assistant or tool", m.Role)
	}
	if err := m.readName(at, &found); err != nil {
		return found, err
	}
	if m.ToolCallID != nil {
		found.ToolCallID = *m.ToolCallID
	}
	if found.ToolCalls, err = ToolCalls(at+"tool_calls", m.ToolCalls); err != nil {
		return found, err
	}
	if len(found.ToolCalls) > 0 && !given(m.Content) {
		return found, nil
	}
	if parts, err := imagesOf(at+"content", m.Content); err != nil || parts != nil {
		found.Parts = parts
		return found, err
	}
	found.Content, err = contentOf(at+"content", m.Content)
	return found, err
}

// readName reads the name of a tool. Other messages have none.
func (m message) readName(at string, found *port.Message) error {
	switch {
	case !filled(m.Name):
		return nil
	case m.Role != "tool":
		return unsupported(at+"name", "messages without names: models see the role alone")
	case json.Unmarshal(m.Name, &found.Name) != nil:
		return fault.Invalid(at+"name", "malformed name, want a text")
	}
	return nil
}

// ToolCalls decodes the calls of tools in a message, in the form of a chat. Faults: InvalidRequest
// and InvalidParams with the path.
func ToolCalls(field string, value json.RawMessage) (found []port.ToolCall, err error) {
	calls, err := decodeEach[toolCall](field, "call", value)
	for i, c := range calls {
		if c.Type != "" && c.Type != typeFunction {
			return nil, unsupported(fmt.Sprintf("%s.%d.type", field, i), typeFunction)
		}
		found = append(found, port.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
	}
	return found, err
}

// contentOf decodes a string, or an array of text parts, which it joins with line breaks.
func contentOf(field string, value json.RawMessage) (string, error) {
	if !given(value) {
		return "", fault.Invalid(field, "missing content, want a text")
	}
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text, nil
	}
	var parts []struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if json.Unmarshal(value, &parts) != nil {
		return "", fault.Invalid(field, "malformed content, want a text or an array of parts with a text")
	}
	all := make([]string, len(parts))
	for i, p := range parts {
		switch p.Type {
		case "text", "input_text", "output_text":
			if p.Text == nil {
				return "", fault.Invalid(fmt.Sprintf("%s.%d.text", field, i), "missing text of a part of the content")
			}
			all[i] = *p.Text
		default:
			return "", unsupported(fmt.Sprintf("%s.%d.type", field, i), "parts with a text")
		}
	}
	return strings.Join(all, "\n"), nil
}
