package job

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// ActionList are the actions of an event: in a document an action, or a list of 1 to
// spec.MaxEventActions actions. A list of one action is equal to that action.
type ActionList []Action

// MarshalJSON encodes a single action as an object, and several as a list.
func (l ActionList) MarshalJSON() ([]byte, error) {
	var value any = []Action(l)
	if len(l) == 1 {
		value = l[0]
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("cannot encode the actions: %w", err)
	}
	return bytes.TrimSpace(text.Bytes()), nil
}

// UnmarshalJSON decodes an action or a list of actions.
func (l *ActionList) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		return json.Unmarshal(text, (*[]Action)(l))
	}
	*l = make(ActionList, 1)
	return json.Unmarshal(text, &(*l)[0])
}

// actionList stores an action or a list of actions.
func (p *problems) actionList(n node, to reflect.Value, path string) {
	if n.kind == kindList {
		p.list(n, to, path)
		return
	}
	if n.kind != kindObject {
		p.mismatch(n, path, "an object, or a list of objects")
		return
	}
	one := reflect.MakeSlice(to.Type(), 1, 1)
	p.decode(n, one.Index(0), path)
	to.Set(one)
}

// events returns the actions of each event, keyed by field.
func (a *Actions) events() iter.Seq2[string, ActionList] {
	return func(yield func(string, ActionList) bool) {
		for _, at := range []struct {
			event spec.EndAction
			list  ActionList
		}{{spec.OnFailure, a.OnFailure}, {spec.OnSuccess, a.OnSuccess}, {spec.OnSkip, a.OnSkip}, {spec.OnRetry, a.OnRetry}, {spec.OnLate, a.OnLate}} {
			if !yield("actions."+string(at.event), at.list) {
				return
			}
		}
	}
}

// fields returns the actions of the list, keyed by field. field is that of the list.
func (l ActionList) fields(field string) iter.Seq2[string, Action] {
	return func(yield func(string, Action) bool) {
		for i, action := range l {
			at := field
			if len(l) > 1 {
				at = join(field, strconv.Itoa(i))
			}
			if !yield(at, action) {
				return
			}
		}
	}
}

// validateEvents checks the lists of actions of events.
func (a *Actions) validateEvents(d Definition, p *problems) {
	for field, list := range a.events() {
		if list != nil && (len(list) == 0 || len(list) > spec.MaxEventActions) {
			p.bad(field, "%d actions, want 1 to %d", len(list), spec.MaxEventActions)
		}
	}
	if a.OnLate != nil && !d.has(spec.MaxExpectedRunTime) {
		p.addConflict("actions."+string(spec.OnLate), "the job has no constraint %s; add it, or leave the action out", spec.MaxExpectedRunTime)
	}
}

// onEvent reports whether the field is that of an action of an event, or of one of its actions.
func onEvent(field string) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(field, "actions."), ".")
	return slices.Contains(spec.EndActions(), spec.EndAction(name))
}

// first returns the first action of the list for a run; nil if it is empty. The others are added
// to further.
func (l ActionList) first(event spec.EndAction, further *map[spec.EndAction][]spec.Action) *spec.Action {
	if len(l) == 0 {
		return nil
	}
	for _, a := range l[1:] {
		if *further == nil {
			*further = map[spec.EndAction][]spec.Action{}
		}
		(*further)[event] = append((*further)[event], a.run())
	}
	return new(l[0].run())
}
