package events

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Unknown contains the fields of an object that this version does not know.
type Unknown map[string]json.RawMessage

// decode reads an object into the struct that into points to, and returns the other fields.
func decode(document []byte, into any) (Unknown, error) {
	if err := json.Unmarshal(document, into); err != nil {
		return nil, err
	}
	var all Unknown
	if err := json.Unmarshal(document, &all); err != nil {
		return nil, err
	}
	for field := range reflect.TypeOf(into).Elem().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		delete(all, name)
	}
	if len(all) == 0 {
		return nil, nil
	}
	return all, nil
}

// encode writes a struct as an object, followed by further fields.
func encode(object any, unknown Unknown) ([]byte, error) {
	document, err := json.Marshal(object)
	if err != nil || len(unknown) == 0 {
		return document, err
	}
	out := bytes.NewBuffer(bytes.TrimSuffix(document, []byte("}")))
	for _, name := range slices.Sorted(maps.Keys(unknown)) {
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		out.Write(key)
		out.WriteByte(':')
		out.Write(unknown[name])
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}
