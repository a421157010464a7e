package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// parse decodes a JSON object into the struct that v points to. It refuses members that the
// struct does not have, except the ignored ones. Fault: InvalidRequest, with the field if one
// member is at fault.
func parse(body []byte, v any, ignored ...string) error {
	if !utf8.Valid(body) {
		return fault.New(fault.InvalidRequest, "invalid UTF-8 in the body")
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil || members == nil {
		return fault.New(fault.InvalidRequest, "malformed body, want a JSON object")
	}
	known := slices.Concat(ignored, membersOf(reflect.TypeOf(v).Elem()))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(known, name) {
			return fault.Invalid(name, "unknown member %.80q", name)
		}
		members[name] = plainNumber(members[name])
	}
	plain, err := json.Marshal(members)
	if err != nil {
		return fault.Wrap(err, fault.InvalidRequest, "malformed body, want a JSON object")
	}
	err = json.Unmarshal(plain, v)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		field := strings.TrimPrefix(strings.TrimPrefix(wrong.Field, "sampling."), "choosing.")
		return fault.Invalid(field, "%s is of type %.40s, want %s", field, wrong.Value, fault.Kind(wrong.Type))
	}
	if err != nil {
		return fault.Wrap(err, fault.InvalidRequest, "malformed body, want a JSON object")
	}
	return nil
}

// plainNumber rewrites an integer such as 36.0 or 1e3 in plain digits. JSON Schema accepts
// these forms as integers. It returns every other value unchanged.
func plainNumber(value json.RawMessage) json.RawMessage {
	const exact = 1 << 53 // above it float64 does not represent every integer
	number, err := strconv.ParseFloat(string(value), 64)
	if err != nil || number != math.Trunc(number) || math.Abs(number) > exact || !strings.ContainsAny(string(value), ".eE") {
		return value
	}
	return strconv.AppendInt(nil, int64(number), 10)
}

// membersOf returns the JSON names of the fields of a struct, including those of embedded
// structs.
func membersOf(t reflect.Type) (names []string) {
	for _, f := range reflect.VisibleFields(t) {
		if name := f.Tag.Get("json"); name != "" && len(f.Index) <= 2 {
			names = append(names, name)
		}
	}
	return names
}

// given reports whether a member is present and not null.
func given(value json.RawMessage) bool { return len(value) > 0 && string(value) != "null" }

// filled reports whether a member is present and not null, false, 0 or empty.
func filled(value json.RawMessage) bool {
	switch strings.Join(strings.Fields(string(value)), "") {
	case "", "null", "false", "0", "0.0", `""`, "[]", "{}":
		return false
	}
	return true
}

// unsupported returns an InvalidParams for a member that the engines do not support.
func unsupported(field, want string) error {
	f := fault.New(fault.InvalidParams, "%s is not supported, want %s", field, want)
	f.Field = field
	return f
}

// refuse returns an InvalidParams for the first member that is filled, or nil.
func refuse(members ...member) error {
	for _, m := range members {
		if filled(m.value) {
			return unsupported(m.name, "a request without it")
		}
	}
	return nil
}

// noChoice returns an InvalidParams for the first member that requires a tool, or nil. Tools
// are not supported.
func noChoice(members ...member) error {
	for _, m := range members {
		if choice := string(m.value); filled(m.value) && choice != `"none"` && choice != `"auto"` {
			return unsupported(m.name, "none or auto, because tools are not supported")
		}
	}
	return nil
}

// member is a member of a request whose values are restricted.
type member struct {
	name  string
	value json.RawMessage
}

// texts decodes a string or an array of strings. It returns nil if the member is missing or
// null. Fault: InvalidRequest with the field.
func texts(field string, value json.RawMessage) ([]string, error) {
	if !given(value) {
		return nil, nil
	}
	var one string
	if json.Unmarshal(value, &one) == nil {
		return []string{one}, nil
	}
	var many []string
	if json.Unmarshal(value, &many) != nil {
		return nil, fault.Invalid(field, "malformed %s, want a text or an array of texts; tokens are not supported", field)
	}
	return many, nil
}

// message is a message in the wire format.
type message struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls json.RawMessage `json:"tool_calls"`
	Name      json.RawMessage `json:"name"`
}

// decodeEach decodes the array of messages in the member field into values of T. Fault:
// InvalidRequest with the path of the element, such as messages.1.
func decodeEach[T any](field string, value json.RawMessage) ([]T, error) {
	var elements []json.RawMessage
	if given(value) && json.Unmarshal(value, &elements) != nil {
		return nil, fault.Invalid(field, "malformed %s, want an array of messages", field)
	}
	found := make([]T, len(elements))
	for i, element := range elements {
		at := fmt.Sprintf("%s.%d", field, i)
		if !given(element) {
			return nil, fault.Invalid(at, "%s is null, want a message", at)
		}
		err := json.Unmarshal(element, &found[i])
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
			at += "." + strings.TrimPrefix(wrong.Field, "message.")
			return nil, fault.Invalid(at, "%s is of type %.40s, want %s", at, wrong.Value, fault.Kind(wrong.Type))
		}
		if err != nil {
			return nil, fault.Invalid(at, "malformed message, want an object")
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
	case "system", "user", "assistant":
	case "developer":
		found.Role = "system"
	default:
		return found, fault.Invalid(at+"role", "unsupported role %.40q, want system, developer, user or assistant", m.Role)
	}
	if filled(m.Name) {
		return found, unsupported(at+"name", "messages without names: models see the role alone")
	}
	if filled(m.ToolCalls) {
		return found, unsupported(at+"tool_calls", "messages without calls of tools")
	}
	found.Content, err = contentOf(at+"content", m.Content)
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
