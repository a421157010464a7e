package importer

import (
	"maps"
	"regexp"
	"slices"

	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// matrix converts the strategy of a job. Axes of the matrix are axes of the job, whose combinations
// run as its children. include and exclude, and values that are no scalars, have no counterpart.
func (j *Job) matrix(strategy *node) {
	axes := strategy.find("matrix")
	if axes == nil || axes.kind != kindObject {
		return // the list of an expression
	}
	axes.seen = true
	found := map[string][]spec.Value{}
	for _, m := range axes.members {
		if m.name == "include" || m.name == "exclude" {
			continue
		}
		name := inputNamed(m.name)
		if values := scalars(m.value); len(values) > 0 && found[name] == nil {
			m.value.done, found[name] = true, values
		}
	}
	d := &j.Definition
	if len(found) == 0 {
		return
	}
	if problem := refusalOf(job.Definition{ID: "x", Image: "x", Matrix: found}, "matrix"); problem != "" {
		j.lose("%s: %s", axes.path, problem)
		return
	}
	d.Matrix = found
	for _, name := range []string{"include", "exclude"} {
		if more := axes.find(name); more != nil {
			more.finish()
			j.lose("%s: %s: the job has each combination of the axes, and no other", more.path, shown(more.value()))
		}
	}
	if d.MaxParallel = strategy.get("max-parallel").number(); d.MaxParallel != nil {
		d.MaxParallel = new(max(*d.MaxParallel, 1))
	}
	if failFast := strategy.get("fail-fast"); failFast == nil || failFast.is("true") {
		d.FailFast = new(true)
	} else { // no further child starts after a failure, unless maxFailures says otherwise
		d.MaxFailures = new(combinations(found) - 1)
		j.lose("%s: %s: a run fails here if all of its children do; maxFailures says how many may fail", failFast.path, failFast.value())
	}
}

// combinations returns the number of combinations of a matrix.
func combinations(axes map[string][]spec.Value) int {
	count := 1
	for values := range maps.Values(axes) {
		count *= len(values)
	}
	return count
}

var wholeNumber = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})$`)

// scalars returns the different values of a list; nil if it has other values, or expressions.
func scalars(list *node) (values []spec.Value) {
	if list.kind != kindList {
		return nil
	}
	for _, m := range list.members {
		if m.value.kind != kindScalar || expression.MatchString(m.value.text) {
			return nil
		}
		v := spec.TextValue(m.value.text)
		if !m.value.quoted && wholeNumber.MatchString(m.value.text) {
			v = spec.Value(m.value.text)
		}
		if !slices.ContainsFunc(values, func(known spec.Value) bool { return known.Text() == v.Text() }) {
			values = append(values, v)
		}
	}
	return values
}
