package asl

import (
	"encoding/json"
	"strconv"

	"github.com/sortie-dev/sortie/local/twin/asl/document"
	"github.com/sortie-dev/sortie/local/twin/asl/path"
)

// reader reads fields of an object and collects mistakes. done reports each field that was not
// read as unknown.
type reader struct {
	*problems
	place  string
	object *document.Object
	asked  map[string]bool
}

func (p *problems) reader(place string, value any) (*reader, bool) {
	object, ok := value.(*document.Object)
	if !ok {
		p.add(place, "must be an object")
		return nil, false
	}
	return &reader{problems: p, place: place, object: object, asked: map[string]bool{}}, true
}

func (r *reader) at(key string) string { return join(r.place, key) }

func (r *reader) get(key string) (any, bool) {
	r.asked[key] = true
	return r.object.Get(key)
}

func (r *reader) has(key string) bool {
	_, ok := r.object.Get(key)
	return ok
}

// refuse reports fields of an unsupported part of the language.
func (r *reader) refuse(feature string, keys ...string) {
	for _, key := range keys {
		if _, ok := r.get(key); ok {
			r.unsupported(r.at(key), feature+" ("+key+")")
		}
	}
}

// language checks the fields that choose the query language.
func (r *reader) language() {
	switch language, ok := r.text("QueryLanguage"); {
	case !ok || language == "JSONPath":
	case language == "JSONata":
		r.unsupported(r.at("QueryLanguage"), "JSONata")
	default:
		r.add(r.at("QueryLanguage"), "must be JSONPath")
	}
}

func (r *reader) done() {
	for _, m := range r.object.Members() {
		if !r.asked[m.Key] {
			r.add(r.at(m.Key), "unknown field")
		}
	}
}

func (r *reader) text(key string) (string, bool) {
	value, ok := r.get(key)
	if !ok {
		return "", false
	}
	text, ok := value.(string)
	if !ok {
		r.add(r.at(key), "must be a string")
	}
	return text, ok
}

// required parses a non-empty text that must be present.
func (r *reader) required(key string) string {
	if !r.has(key) {
		r.asked[key] = true
		r.add(r.at(key), "is missing")
		return ""
	}
	text, ok := r.text(key)
	if ok && text == "" {
		r.add(r.at(key), "is empty")
	}
	return text
}

func (r *reader) flag(key string) bool {
	value, ok := r.get(key)
	if !ok {
		return false
	}
	flag, ok := value.(bool)
	if !ok {
		r.add(r.at(key), "must be true or false")
	}
	return flag
}

func (r *reader) list(key string) ([]any, bool) {
	value, ok := r.get(key)
	if !ok {
		return nil, false
	}
	list, ok := value.([]any)
	if !ok {
		r.add(r.at(key), "must be an array")
	}
	return list, ok
}

func (r *reader) integer(key string, least, most int64) (int64, bool) {
	value, ok := r.get(key)
	if !ok {
		return 0, false
	}
	n, ok := integer(value)
	if !ok || n < least || n > most {
		r.add(r.at(key), "must be an integer from %d to %d", least, most)
		return 0, false
	}
	return n, true
}

func (r *reader) float(key string, least float64) (float64, bool) {
	value, ok := r.get(key)
	if !ok {
		return 0, false
	}
	n, _ := value.(json.Number)
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil || f < least {
		r.add(r.at(key), "must be a number of at least %g", least)
		return 0, false
	}
	return f, true
}

// path parses the path under key, or returns nil.
func (r *reader) path(key string) *path.Path {
	text, ok := r.text(key)
	if !ok {
		return nil
	}
	return r.parsePath(r.at(key), text)
}

func (p *problems) parsePath(place, text string) *path.Path {
	if isVariable(text) {
		p.unsupported(place, "variables ("+text+")")
		return nil
	}
	parsed, err := path.Parse(text)
	if err != nil {
		p.add(place, "%v", err)
		return nil
	}
	return &parsed
}

// isVariable reports whether the text refers to a variable: "$name".
func isVariable(text string) bool {
	return len(text) > 1 && text[0] == '$' &&
		(text[1] >= 'a' && text[1] <= 'z' || text[1] >= 'A' && text[1] <= 'Z' || text[1] == '_')
}

// field parses InputPath, OutputPath, ItemsPath or ResultPath.
func (r *reader) field(key string, nullable bool) field {
	value, ok := r.get(key)
	if !ok {
		return field{}
	}
	if value == nil {
		if !nullable {
			r.add(r.at(key), "must not be null")
		}
		return field{set: true, null: true}
	}
	parsed := r.path(key)
	if parsed == nil {
		return field{}
	}
	return field{set: true, path: *parsed}
}

// target parses the destination of a result: a reference path into the state's
// input.
func (r *reader) target(key string) field {
	f := r.field(key, true)
	if f.set && !f.null && (!f.path.Reference() || f.path.Context()) {
		r.add(r.at(key), "must be a reference path such as $.result")
		return field{}
	}
	return f
}

// amount parses a number under key or a path under key + "Path".
func (r *reader) amount(key string, least, most int64) amount {
	value, literal := r.integer(key, least, most)
	pathKey := key + "Path"
	if r.has(key) && r.has(pathKey) {
		r.add(r.at(key), "cannot be combined with %s", pathKey)
	}
	if p := r.path(pathKey); p != nil {
		if !p.Definite() {
			r.add(r.at(pathKey), "must be a path to one value")
		}
		return amount{set: true, path: p}
	}
	return amount{set: literal, value: value}
}
