package httpkit

import (
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

// nameLimit is how much of a field's name is told back, in bytes.
const nameLimit = 64

// shape holds a JSON text against a Go type, token by token, for what
// encoding/json lets pass: names in another case, names that come twice,
// unknown names without their path, nulls, and text behind the value.
type shape struct {
	tokens *json.Decoder
	how    Leniency
}

func (s *shape) document(t reflect.Type) error {
	first, err := s.tokens.Token()
	if err != nil {
		return notJSON(err)
	}
	if first != json.Delim('{') {
		return fault.New(fault.InvalidRequest, "the body is a JSON object")
	}
	if err := s.object(t, "", 1); err != nil {
		return err
	}
	_, err = s.tokens.Token()
	switch {
	case err == nil:
		return fault.New(fault.InvalidRequest, "there is something behind the JSON object")
	case !errors.Is(err, io.EOF):
		return notJSON(err)
	}
	return nil
}

// object reads the members of an object up to its end. t is the type they go
// to, nil where anything may stand.
func (s *shape) object(t reflect.Type, path string, depth int) error {
	if depth > depthLimit {
		return fault.Invalid(path, "the body is nested deeper than %d", depthLimit)
	}
	seen := map[string]bool{}
	for s.tokens.More() {
		token, err := s.tokens.Token()
		if err != nil {
			return notJSON(err)
		}
		name, _ := token.(string)
		at := join(path, orchestrator.Cut(name, nameLimit))
		if seen[name] && (s.how == Strict || t != nil) {
			return fault.Invalid(at, "%s stands there twice", at)
		}
		seen[name] = true
		member, known := memberOf(t, name)
		if !known && s.how == Strict {
			return fault.Invalid(at, "there is no field %s%s", at, namesOf(t))
		}
		if err := s.value(member, at, depth); err != nil {
			return err
		}
	}
	return s.end()
}

func (s *shape) array(t reflect.Type, path string, depth int) error {
	if depth > depthLimit {
		return fault.Invalid(path, "the body is nested deeper than %d", depthLimit)
	}
	for i := 0; s.tokens.More(); i++ {
		if err := s.value(t, join(path, strconv.Itoa(i)), depth); err != nil {
			return err
		}
	}
	return s.end()
}

func (s *shape) end() error {
	if _, err := s.tokens.Token(); err != nil {
		return notJSON(err)
	}
	return nil
}

func (s *shape) value(t reflect.Type, path string, depth int) error {
	token, err := s.tokens.Token()
	if err != nil {
		return notJSON(err)
	}
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch token {
	case json.Delim('{'):
		return s.object(t, path, depth+1)
	case json.Delim('['):
		if t != nil && t.Kind() == reflect.Slice {
			t = t.Elem()
		} else {
			t = nil
		}
		return s.array(t, path, depth+1)
	case nil:
		if s.how == Strict && t != nil {
			return fault.Invalid(path, "%s is %s, not null; leave it out instead", path, kindOf(t))
		}
	}
	return nil
}

// memberOf is the type that a member goes to, by its exact name; nil where
// anything may stand, and known false where the type has no such field.
func memberOf(t reflect.Type, name string) (member reflect.Type, known bool) {
	if t == nil || t == reflect.TypeFor[json.RawMessage]() || t.Kind() != reflect.Struct {
		return nil, true
	}
	for field := range t.Fields() {
		if tag, _, _ := strings.Cut(field.Tag.Get("json"), ","); tag == name {
			if field.Type == reflect.TypeFor[json.RawMessage]() {
				return nil, true
			}
			return field.Type, true
		}
	}
	return nil, false
}

// namesOf lists the fields of a type, for whoever misspelled one.
func namesOf(t reflect.Type) string {
	var names []string
	for field := range t.Fields() {
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, tag)
	}
	return "; there is: " + strings.Join(names, ", ")
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
