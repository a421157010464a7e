package format

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// attribute is a value in DynamoDB's JSON, of the types that the table uses.
type attribute struct {
	S, N *string
	B    []byte
	L    []attribute
}

// document returns the packed or plain document in an attribute.
func (a attribute) document() []byte {
	if a.S != nil {
		return []byte(*a.S)
	}
	return a.B
}

// Inspect returns an item of the table, in DynamoDB's JSON, as readable JSON: record and events
// unpacked, attributes without their types. It accepts the item itself or one in the member
// "Item", as in the output of get-item and in table exports. Task tokens and the secrets of
// webhooks are replaced by "redacted".
func Inspect(item []byte) (map[string]any, error) {
	var wrapped struct{ Item json.RawMessage }
	if err := json.Unmarshal(item, &wrapped); err == nil && wrapped.Item != nil {
		item = wrapped.Item
	}
	var attributes map[string]attribute
	if err := json.Unmarshal(item, &attributes); err != nil {
		return nil, fmt.Errorf("malformed item, want the JSON of DynamoDB: %w", err)
	}
	if len(attributes) == 0 {
		return nil, errors.New("empty item, want the JSON of DynamoDB")
	}
	readable := map[string]any{}
	for name, a := range attributes {
		value, err := a.readable(name)
		if err != nil {
			return nil, fmt.Errorf("attribute %s: %w", name, err)
		}
		readable[name] = value
	}
	Redact(readable)
	return readable, nil
}

func (a attribute) readable(name string) (value any, err error) {
	switch {
	case name == "doc":
		err = Unpack(a.document(), &value)
	case name == "secrets": // of a webhook
		value = "redacted"
	case name == "ev":
		list := make([]any, len(a.L))
		for i, each := range a.L {
			if list[i], err = UnpackEvent(each.document()); err != nil {
				return nil, err
			}
		}
		value = list
	case a.S != nil:
		value = *a.S
	case a.N != nil:
		value = json.Number(*a.N)
	default:
		value = fmt.Sprintf("%x", a.B)
	}
	return value, err
}

// Redact replaces the text of every member whose name ends in "token" in
// decoded JSON, in place.
func Redact(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if text, ok := member.(string); ok && text != "" && strings.HasSuffix(strings.ToLower(name), "token") {
				v[name] = "redacted"
				continue
			}
			Redact(member)
		}
	case []any:
		for _, element := range v {
			Redact(element)
		}
	}
}
