package fault

import (
	"encoding/json"
	"reflect"
)

// Kind returns a description of the JSON values that a Go type decodes, such as "a string",
// for the message of a fault.
func Kind(t reflect.Type) string {
	if t == reflect.TypeFor[json.RawMessage]() {
		return "a value"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Int, reflect.Int64:
		return "an integer"
	case reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Pointer:
		return Kind(t.Elem())
	}
	return "an object"
}
