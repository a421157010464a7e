package inference

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// checkSchema returns an InvalidRequest fault for a text that is no JSON schema that an engine can
// read. It checks the shape only: engines answer a wrong shape with an internal error. A $ref must
// point into the schema, because nothing is fetched. An empty text is valid.
func checkSchema(field string, text json.RawMessage) error {
	if len(text) == 0 {
		return nil
	}
	if !isObject(text) {
		return fault.Invalid(field, "want a JSON schema, an object")
	}
	if nesting(text) > Nesting {
		return fault.Invalid(field, "more than %d levels of nesting", Nesting)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		return fault.Invalid(field, "want a JSON schema, an object")
	}
	err := checkSubschema(field, schema)
	if f := fault.Of(err); f != nil && len(f.Field) > longestField {
		f.Field = field
		return f
	}
	return err
}

// longestField is the longest path of a fault in bytes. Names in a schema have any length.
const longestField = 200

// checkSubschema checks a schema at a path.
func checkSubschema(at string, of any) error {
	schema, ok := of.(map[string]any)
	if !ok {
		if _, truth := of.(bool); truth {
			return nil
		}
		return fault.Invalid(at, "want a JSON schema, an object or a truth value")
	}
	for _, key := range slices.Sorted(maps.Keys(schema)) {
		if err := checkKeyword(at+"."+key, key, schema[key]); err != nil {
			return err
		}
	}
	return nil
}

// checkKeyword checks the value of a keyword. Unknown keywords have any value.
func checkKeyword(at, key string, value any) error {
	switch key {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		return checkMembers(at, value)
	case "anyOf", "allOf", "oneOf", "prefixItems":
		return checkElements(at, value)
	case "items":
		if _, list := value.([]any); list {
			return checkElements(at, value)
		}
		return checkSubschema(at, value)
	case "additionalProperties", "unevaluatedProperties", "propertyNames", "not", "contains", "if", "then", "else":
		return checkSubschema(at, value)
	case "$ref":
		if ref, ok := value.(string); !ok || !strings.HasPrefix(ref, "#") {
			return fault.Invalid(at, "want a reference into the schema, such as #/$defs/name; nothing is fetched")
		}
	case "type":
		if _, ok := value.(string); !ok && !isTexts(value) {
			return fault.Invalid(at, "want the name of a type, or a list of names")
		}
	case "required":
		if !isTexts(value) {
			return fault.Invalid(at, "want a list of names")
		}
	case "enum":
		if list, ok := value.([]any); !ok || len(list) == 0 {
			return fault.Invalid(at, "want a list of at least one value")
		}
	case "pattern", "format":
		if _, ok := value.(string); !ok {
			return fault.Invalid(at, "want a text")
		}
	case "minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		if _, ok := value.(float64); !ok {
			return fault.Invalid(at, "want a number")
		}
	}
	return nil
}

// checkMembers checks an object whose members are schemas.
func checkMembers(at string, value any) error {
	members, ok := value.(map[string]any)
	if !ok {
		return fault.Invalid(at, "want an object of JSON schemas")
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if err := checkSubschema(at+"."+name, members[name]); err != nil {
			return err
		}
	}
	return nil
}

// checkElements checks a list of schemas.
func checkElements(at string, value any) error {
	list, ok := value.([]any)
	if !ok {
		return fault.Invalid(at, "want a list of JSON schemas")
	}
	for _, each := range list {
		if err := checkSubschema(at, each); err != nil {
			return err
		}
	}
	return nil
}

func isTexts(value any) bool {
	list, ok := value.([]any)
	return ok && !slices.ContainsFunc(list, func(each any) bool { _, text := each.(string); return !text })
}

// isObject reports whether a JSON text is an object.
func isObject(text json.RawMessage) bool {
	return json.Valid(text) && strings.HasPrefix(strings.TrimSpace(string(text)), "{")
}

// nesting returns the number of levels of objects and arrays in a JSON text.
func nesting(text []byte) (most int) {
	depth, quoted, escaped := 0, false, false
	for _, c := range text {
		switch {
		case escaped:
			escaped = false
		case quoted:
			quoted, escaped = c != '"', c == '\\'
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			depth++
			most = max(most, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return most
}
