package path

import (
	"fmt"

	"github.com/sortie-dev/sortie/local/twin/asl/document"
)

// Set returns a copy of top in which the reference path has the value. It
// creates missing objects. It returns an error if the path leads through a
// value that is neither object nor array, or beyond the end of an array.
func (p Path) Set(top, value any) (any, error) {
	if !p.Reference() || p.context {
		return nil, fmt.Errorf("%s is not a reference path", p.text)
	}
	return set(p.steps, top, value, true)
}

func set(steps []step, into, value any, exists bool) (any, error) {
	if len(steps) == 0 {
		return value, nil
	}
	switch s := steps[0].(type) {
	case nameStep:
		o, ok := into.(*document.Object)
		if !ok {
			if exists {
				return nil, fmt.Errorf("%s leads into something that is not an object", s.text())
			}
			o = document.NewObject()
		}
		inner, found := o.Get(s.name)
		changed, err := set(steps[1:], inner, value, found)
		if err != nil {
			return nil, err
		}
		return o.With(s.name, changed), nil
	case indexStep:
		list, ok := into.([]any)
		if !ok || s.index >= len(list) {
			return nil, fmt.Errorf("%s leads beyond the end of an array", s.text())
		}
		changed, err := set(steps[1:], list[s.index], value, true)
		if err != nil {
			return nil, err
		}
		list = append([]any(nil), list...)
		list[s.index] = changed
		return list, nil
	default:
		return nil, fmt.Errorf("%s is not a reference path", s.text())
	}
}
