package spec

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

// Value is the value of an input of a run: the JSON of a string, a number or a boolean.
type Value string

// TextValue returns the value of a string.
func TextValue(text string) Value {
	var to bytes.Buffer
	encoder := json.NewEncoder(&to)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) //nolint:errchkjson // a string always has a JSON form
	return Value(bytes.TrimSpace(to.Bytes()))
}

// MarshalJSON returns the value.
func (v Value) MarshalJSON() ([]byte, error) { return []byte(v), nil }

// UnmarshalJSON stores the value.
func (v *Value) UnmarshalJSON(text []byte) error {
	*v = Value(text)
	return nil
}

// Text returns the value as text: that of a string, or the JSON of a number or a boolean.
func (v Value) Text() string {
	var text string
	if json.Unmarshal([]byte(v), &text) != nil {
		return string(v)
	}
	return text
}

// The names that a template can have, beside those of inputs, which begin with InputPrefix, and of
// sensor.Attributes, which begin with EventPrefix.
const (
	ScheduledName = "scheduledAt"
	RunName       = "runId"
	InputPrefix   = "inputs."
	EventPrefix   = "event."
	// ItemName and the following names have values only in children. The name of an axis follows
	// MatrixPrefix.
	ItemName      = "item"
	ItemIndexName = "itemIndex"
	MatrixPrefix  = "matrix."
)

// expandedLimit is the size in bytes at which Expand stops.
const expandedLimit = 256 << 10

var letterFirst = regexp.MustCompile(`^ *[A-Za-z_]`)

// Expand replaces each {{name}} in a template by the value of the name, and {{{{ by a literal {{.
// A {{ that no letter follows stays as it is. Values are not expanded again. unknown are the names
// without a value, which stay as they are. An expansion stops at 256 KiB.
func Expand(template string, value func(name string) (string, bool)) (text string, unknown []string) {
	if !strings.Contains(template, "{{") {
		return template, nil
	}
	var b strings.Builder
	for b.Len() < expandedLimit {
		before, rest, found := strings.Cut(template, "{{")
		b.WriteString(before)
		if !found {
			break
		}
		if after, ok := strings.CutPrefix(rest, "{{"); ok {
			b.WriteString("{{")
			template = after
			continue
		}
		if !letterFirst.MatchString(rest) {
			b.WriteString("{{")
			template = rest
			continue
		}
		name, after, closed := strings.Cut(rest, "}}")
		v, ok := "", false
		if closed {
			v, ok = value(strings.TrimSpace(name))
		}
		if !ok {
			v = template[len(before) : len(template)-len(after)]
			unknown = append(unknown, strings.TrimSpace(name))
		}
		b.WriteString(v)
		template = after
	}
	return b.String(), unknown
}
