package path

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/sortie-dev/sortie/local/twin/asl/document"
)

// MissingError reports a definite path without a value, worded as Jayway does.
type MissingError struct{ What string }

func (e *MissingError) Error() string { return e.What }

func missing(format string, args ...any) error {
	return &MissingError{What: fmt.Sprintf(format, args...)}
}

// Find returns the value of a definite path or a *MissingError, and a list for
// any other path.
func (p Path) Find(top any) (any, error) {
	if !p.definite {
		found := []any{}
		walk(p.steps, top, top, func(v any) { found = append(found, v) })
		return found, nil
	}
	value, where := top, "$"
	for i, s := range p.steps {
		next, err := one(s, value, where, i == len(p.steps)-1)
		if err != nil {
			return nil, err
		}
		value, where = next, ""
		if i < len(p.steps)-1 {
			where = prefix(p.steps[:i+1])
		}
	}
	return value, nil
}

// Has reports whether the path has a value, or at least one if it is
// indefinite.
func (p Path) Has(top any) bool {
	found := false
	walk(p.steps, top, top, func(any) { found = true })
	return found
}

func prefix(steps []step) string {
	text := "$"
	for _, s := range steps {
		text += s.text()
	}
	return text
}

// one resolves one step of a definite path. The messages are Jayway's.
func one(s step, value any, where string, last bool) (any, error) {
	var (
		found any
		ok    bool
	)
	s.find(value, nil, func(v any) { found, ok = v, true })
	if ok {
		return found, nil
	}
	switch s.(type) {
	case nameStep:
		if _, is := value.(*document.Object); !is {
			return nil, missing("Expected to find an object with property %s in path %s but found '%s'. "+
				"This is not a json object according to the JsonProvider", s.text(), where, javaKind(value))
		}
		if !last {
			return nil, missing("Missing property in path %s%s", where, s.text())
		}
	case indexStep:
		if value == nil {
			return nil, missing("The path %s is null", where)
		}
		if _, is := value.([]any); !is {
			return nil, missing("Filter: %s can only be applied to arrays. Current context is: %s", s.text(), document.String(value))
		}
	}
	return nil, missing("No results for path: %s%s", where, s.text())
}

func javaKind(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "java.lang.String"
	case bool:
		return "java.lang.Boolean"
	case json.Number:
		return "java.lang.Number"
	default:
		return "java.util.ArrayList"
	}
}

// walk calls yield with each value of the steps.
func walk(steps []step, value, top any, yield func(any)) {
	if len(steps) == 0 {
		yield(value)
		return
	}
	steps[0].find(value, top, func(v any) { walk(steps[1:], v, top, yield) })
}

func (s nameStep) find(value, _ any, yield func(any)) {
	if o, ok := value.(*document.Object); ok {
		if v, found := o.Get(s.name); found {
			yield(v)
		}
	}
}

// find yields an object of the members, as Jayway does.
func (s namesStep) find(value, _ any, yield func(any)) {
	o, ok := value.(*document.Object)
	if !ok {
		return
	}
	some := document.NewObject()
	for _, name := range s.names {
		if v, found := o.Get(name); found {
			some.Set(name, v)
		}
	}
	yield(some)
}

func (s indexStep) find(value, _ any, yield func(any)) {
	list, _ := value.([]any)
	at := s.index
	if at < 0 {
		at += len(list)
	}
	if at >= 0 && at < len(list) {
		yield(list[at])
	}
}

func (s indexesStep) find(value, top any, yield func(any)) {
	for _, index := range s.indexes {
		indexStep{index: index}.find(value, top, yield)
	}
}

func (s sliceStep) find(value, _ any, yield func(any)) {
	list, _ := value.([]any)
	bound := func(b *int, otherwise int) int {
		if b == nil {
			return otherwise
		}
		if *b < 0 {
			return max(*b+len(list), 0)
		}
		return min(*b, len(list))
	}
	stride := 1
	if s.step != nil {
		stride = *s.step
	}
	for at, to := bound(s.from, 0), bound(s.to, len(list)); at < to; at += stride {
		yield(list[at])
	}
}

func (wildcardStep) find(value, _ any, yield func(any)) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			yield(item)
		}
	case *document.Object:
		for _, m := range v.Members() {
			yield(m.Value)
		}
	}
}

func (s deepStep) find(value, top any, yield func(any)) {
	s.next.find(value, top, yield)
	wildcardStep{}.find(value, top, func(inner any) {
		switch inner.(type) {
		case []any, *document.Object:
			s.find(inner, top, yield)
		}
	})
}

// find evaluates the condition for each item of a list, or for an object as a
// whole.
func (s filterStep) find(value, top any, yield func(any)) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			if s.condition.holds(item, top) {
				yield(item)
			}
		}
	case *document.Object:
		if s.condition.holds(v, top) {
			yield(v)
		}
	}
}

func (lengthStep) find(value, _ any, yield func(any)) {
	switch v := value.(type) {
	case []any:
		yield(json.Number(strconv.Itoa(len(v))))
	case *document.Object:
		yield(json.Number(strconv.Itoa(v.Len())))
	case string:
		yield(json.Number(strconv.Itoa(len([]rune(v)))))
	}
}
