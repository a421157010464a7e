package asl

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sortie-dev/sortie/local/twin/asl/document"
	"github.com/sortie-dev/sortie/local/twin/asl/path"
)

// rule is a rule of a Choice: a condition and the next state.
type rule struct {
	test test
	next string
}

// test is a condition of a Choice. A combination has parts, a comparison has a
// variable.
type test struct {
	combination string // "And", "Or", "Not" or ""
	parts       []test

	variable path.Path
	family   string // "String", "Numeric", "Boolean", "Timestamp", "StringMatches", "IsNull", ...
	relation string // "Equals", "LessThan", ...
	literal  any
	other    *path.Path // of operators that end in Path
}

func (r *reader) choice(s *state) {
	s.otherwise, _ = r.text("Default")
	list, ok := r.list("Choices")
	if len(list) == 0 && (ok || !r.has("Choices")) {
		r.add(r.at("Choices"), "want at least one")
	}
	for i, value := range list {
		if c, ok := r.reader(fmt.Sprintf("%s[%d]", r.at("Choices"), i), value); ok {
			c.refuse("variables", "Assign")
			c.refuse("JSONata", "Output", "Condition")
			next := c.required("Next")
			s.choices = append(s.choices, rule{test: c.test(), next: next})
		}
	}
}

func (r *reader) test() test {
	t := test{}
	r.text("Comment")
	operators := 0
	for _, m := range r.object.Members() {
		switch key := m.Key; {
		case r.asked[key] || key == "Variable":
		case key == "And" || key == "Or":
			operators++
			t.combination = key
			list, ok := r.list(key)
			if ok && len(list) == 0 {
				r.add(r.at(key), "want at least one")
			}
			for i, value := range list {
				if part, ok := r.reader(fmt.Sprintf("%s[%d]", r.at(key), i), value); ok {
					t.parts = append(t.parts, part.test())
				}
			}
		case key == "Not":
			operators++
			t.combination = key
			value, _ := r.get(key)
			if part, ok := r.reader(r.at(key), value); ok {
				t.parts = []test{part.test()}
			}
		default:
			if r.comparison(&t, key) {
				operators++
			}
		}
	}
	r.asked["Variable"] = t.combination == ""
	if operators != 1 {
		r.add(r.place, "got %d operators, want one", operators)
	}
	if t.combination == "" && operators == 1 {
		if r.has("Variable") {
			if p := r.path("Variable"); p != nil {
				t.variable = *p
			}
		} else {
			r.add(r.at("Variable"), "is missing")
		}
	}
	r.done()
	return t
}

// comparison parses the operator key. It returns false if key is not an operator.
func (r *reader) comparison(t *test, key string) bool {
	name, isPath := strings.CutSuffix(key, "Path")
	switch name {
	case "IsNull", "IsPresent", "IsNumeric", "IsString", "IsBoolean", "IsTimestamp":
		if isPath {
			return false
		}
		t.family = name
		t.literal = r.flag(key)
		return true
	case "StringMatches":
		if isPath {
			return false
		}
		t.family = name
		t.literal, _ = r.text(key)
		return true
	case "BooleanEquals":
		t.family, t.relation = "Boolean", "Equals"
	default:
		for _, family := range []string{"String", "Numeric", "Timestamp"} {
			relation, ok := strings.CutPrefix(name, family)
			if !ok {
				continue
			}
			switch relation {
			case "Equals", "LessThan", "GreaterThan", "LessThanEquals", "GreaterThanEquals":
				t.family, t.relation = family, relation
			}
		}
		if t.relation == "" {
			return false
		}
	}
	if isPath {
		t.other = r.path(key)
		return true
	}
	value, _ := r.get(key)
	if !ofFamily(t.family, value) {
		r.add(r.at(key), "value of the wrong type")
	}
	t.literal = value
	return true
}

func ofFamily(family string, value any) bool {
	switch v := value.(type) {
	case string:
		if family == "Timestamp" {
			_, ok := parseTimestamp(v, false)
			return ok
		}
		return family == "String"
	case json.Number:
		return family == "Numeric"
	case bool:
		return family == "Boolean"
	default:
		return false
	}
}

// holds evaluates the test. The error is a *Failure.
func (t *test) holds(f *frame, env *Env, data any) (bool, error) {
	switch t.combination {
	case "And", "Or":
		for i := range t.parts {
			ok, err := t.parts[i].holds(f, env, data)
			if err != nil || ok == (t.combination == "Or") {
				return ok, err
			}
		}
		return t.combination == "And", nil
	case "Not":
		ok, err := t.parts[0].holds(f, env, data)
		return !ok, err
	}
	if t.family == "IsPresent" {
		return f.has(env, t.variable, data) == t.literal, nil
	}
	value, err := f.find(env, t.variable, data)
	if err != nil {
		return false, f.badVariable(t.variable)
	}
	if t.relation == "" {
		return t.inspect(value), nil
	}
	other := t.literal
	if t.other != nil {
		if other, err = f.find(env, *t.other, data); err != nil {
			return false, f.badVariable(*t.other)
		}
	}
	return compare(t.family, t.relation, value, other), nil
}

func (f *frame) badVariable(p path.Path) *Failure {
	return f.failure(errorRuntime, "Invalid path '%s': The choice state's condition path references an invalid value.", p)
}

// inspect evaluates an operator that tests one value.
func (t *test) inspect(value any) bool {
	is := false
	switch t.family {
	case "StringMatches":
		text, ok := value.(string)
		pattern, _ := t.literal.(string)
		return ok && matches(pattern, text)
	case "IsNull":
		is = value == nil
	case "IsNumeric":
		_, is = value.(json.Number)
	case "IsString":
		_, is = value.(string)
	case "IsBoolean":
		_, is = value.(bool)
	case "IsTimestamp":
		is = ofFamily("Timestamp", value)
	}
	return is == t.literal
}

// compare evaluates a relation between two values. It returns false if a value is not of the
// operator's type [recorded].
func compare(family, relation string, a, b any) bool {
	if !ofFamily(family, a) || !ofFamily(family, b) {
		return false
	}
	order := 0
	switch x := a.(type) {
	case bool:
		return a == b
	case json.Number:
		y, _ := b.(json.Number)
		order = document.Compare(x, y)
	case string:
		y, _ := b.(string)
		if family != "Timestamp" {
			order = strings.Compare(x, y)
			break
		}
		earlier, _ := parseTimestamp(x, false)
		later, _ := parseTimestamp(y, false)
		order = earlier.Compare(later)
	}
	switch relation {
	case "Equals":
		return order == 0
	case "LessThan":
		return order < 0
	case "LessThanEquals":
		return order <= 0
	case "GreaterThan":
		return order > 0
	default:
		return order >= 0
	}
}

// matches implements StringMatches: '*' matches any characters; `\*` and `\\`
// match the escaped character.
func matches(pattern, text string) bool {
	var parts []string // the text between two asterisks
	var part strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\' && i+1 < len(pattern) && (pattern[i+1] == '*' || pattern[i+1] == '\\'):
			i++
			part.WriteByte(pattern[i])
		case c == '*':
			parts = append(parts, part.String())
			part.Reset()
		default:
			part.WriteByte(c)
		}
	}
	last := part.String()
	if len(parts) == 0 {
		return text == last
	}
	rest, ok := strings.CutPrefix(text, parts[0])
	for _, middle := range parts[1:] {
		if ok {
			_, rest, ok = strings.Cut(rest, middle)
		}
	}
	return ok && strings.HasSuffix(rest, last)
}
