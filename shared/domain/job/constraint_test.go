package job

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// TestEachConstraintReachesTheRun defines jobs with one constraint each. The job has the
// constraint, its runs have it too, and simulated firings depend on those before the run.
func TestEachConstraintReachesTheRun(t *testing.T) {
	t.Parallel()
	var found []spec.Constraint
	for field := range reflect.TypeFor[Constraints]().Fields() {
		text, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		name := spec.Constraint(text)
		if !slices.Contains(spec.ConstraintNames(), name) {
			continue // it changes the effect of another one
		}
		found = append(found, name)
		d := Definition{Constraints: &Constraints{}}
		var value any
		switch reflect.New(field.Type).Elem().Interface().(type) {
		case *int:
			value = new(1)
		case *bool:
			value = new(true)
		case Duration:
			value = Duration("1h")
		case *Hook:
			value = &Hook{URL: "https://example.org/"}
		}
		reflect.ValueOf(d.Constraints).Elem().FieldByIndex(field.Index).Set(reflect.ValueOf(value))
		if !d.has(name) {
			t.Errorf("%s: got a job without the constraint", name)
		}
		of := d.constraints()
		if name != spec.MaxAllowedRunTime && reflect.DeepEqual(*of, spec.Constraints{}) { // a limit of spec.Policy
			t.Errorf("%s: got a run without the constraint", name)
		}
		if demands := d.demands(time.Time{}); of.BeforeRun() != (len(demands) == 1) {
			t.Errorf("%s: got the demands %q, want one if it is before the run: %t", name, demands, of.BeforeRun())
		}
	}
	slices.Sort(found)
	if want := slices.Sorted(slices.Values(spec.ConstraintNames())); !slices.Equal(found, want) {
		t.Errorf("got the constraints %v, want %v", found, want)
	}
}
