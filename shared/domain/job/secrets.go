package job

import (
	"iter"
	"maps"
	"slices"
)

// SecretRefs returns the names of the secrets that the definition refers to, keyed by field.
func (d Definition) SecretRefs() iter.Seq2[string, string] {
	return func(yield func(field, name string) bool) {
		named := func(field, name string) bool { return name == "" || yield(field, name) }
		for _, variable := range slices.Sorted(maps.Keys(d.Env)) {
			if !named(join("env", variable)+".secretRef", d.Env[variable].SecretRef) {
				return
			}
		}
		if c := d.Constraints; c != nil {
			if c.PreRunHook != nil && !named("constraints.preRunHook.secretRef", c.PreRunHook.SecretRef) ||
				c.PostRunHook != nil && !named("constraints.postRunHook.secretRef", c.PostRunHook.SecretRef) {
				return
			}
		}
		for field, a := range d.actions() {
			if name, ok := a.Parameters["secretRef"].(string); ok && !named(field+".parameters.secretRef", name) {
				return
			}
		}
		if s := d.Sensor; s != nil {
			kind := "bucket"
			if s.Queue != nil {
				kind = "queue"
			}
			named("sensor."+kind+".secretRef", s.SecretRef())
		}
	}
}
