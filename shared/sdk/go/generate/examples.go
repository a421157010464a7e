package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// examples returns the examples of the schemas, for a test of the types.
func (m *models) examples() (string, error) {
	var b strings.Builder
	b.WriteString("package api\n\nvar examples = []struct {\n\tname string\n\tvalue any\n\tjson string\n}{\n")
	for _, name := range m.schemas.keys {
		if m.made[name] == nil {
			continue
		}
		for _, example := range m.schemas.object(name).list("examples") {
			text, err := json.Marshal(plain(example))
			if err != nil {
				return "", fmt.Errorf("example of %s: %w", name, err)
			}
			fmt.Fprintf(&b, "\t{%q, new(%s), %q},\n", name, name, text)
		}
	}
	b.WriteString("}\n")
	return b.String(), nil
}

func plain(value any) any {
	switch v := value.(type) {
	case *object:
		all := map[string]any{}
		for _, key := range v.keys {
			all[key] = plain(v.values[key])
		}
		return all
	case []any:
		all := make([]any, len(v))
		for i := range v {
			all[i] = plain(v[i])
		}
		return all
	}
	return value
}
