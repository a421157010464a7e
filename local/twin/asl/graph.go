package asl

import (
	"fmt"
	"maps"
	"slices"
)

// checkTargets reports unknown targets, unreachable states and missing ends.
func (r *reader) checkTargets(g *graph, place string) {
	if g.startAt != "" && g.states[g.startAt] == nil {
		r.add(r.at("StartAt"), "no state %q", g.startAt)
	}
	reached := map[string]bool{g.startAt: true}
	for todo := []string{g.startAt}; len(todo) > 0; todo = todo[1:] {
		s := g.states[todo[0]]
		if s == nil {
			continue
		}
		for _, next := range s.targets() {
			if !reached[next] {
				reached[next] = true
				todo = append(todo, next)
			}
		}
	}
	r.checkEnds(g, place, reached)
	for _, name := range g.order {
		s, at := g.states[name], join(place, name)
		if !reached[name] && g.states[g.startAt] != nil {
			r.add(at, "unreachable state")
		}
		missing := func(field, target string) {
			if target != "" && g.states[target] == nil {
				r.add(join(at, field), "no state %q", target)
			}
		}
		missing("Next", s.next)
		missing("Default", s.otherwise)
		for i, c := range s.choices {
			missing(fmt.Sprintf("Choices[%d].Next", i), c.next)
		}
		for i, c := range s.catch {
			missing(fmt.Sprintf("Catch[%d].Next", i), c.next)
		}
	}
}

// checkEnds reports a graph without a possible last state, as Step Functions does
// (MISSING_END_STATE). It warns of states from which no such state is reachable. Step Functions
// permits these, because an error or a timeout can end the execution.
func (r *reader) checkEnds(g *graph, place string, reached map[string]bool) {
	ends := map[string]bool{}
	for name, s := range g.states {
		// An unknown target is reported as a separate mistake.
		ends[name] = s.mayEnd() || slices.ContainsFunc(s.targets(), func(next string) bool { return g.states[next] == nil })
	}
	if !slices.Contains(slices.Collect(maps.Values(ends)), true) {
		r.add(place, "no terminal state, want one of type Succeed or Fail, or with End")
		return
	}
	for changed := true; changed; {
		changed = false
		for name, s := range g.states {
			if !ends[name] && slices.ContainsFunc(s.targets(), func(next string) bool { return ends[next] }) {
				ends[name], changed = true, true
			}
		}
	}
	for _, name := range g.order {
		if reached[name] && !ends[name] {
			r.warn(join(place, name), "no terminal state is reachable from it")
		}
	}
}
