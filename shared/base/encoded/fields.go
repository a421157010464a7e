package encoded

import (
	"reflect"
	"strings"
	"time"
	"unsafe"
)

// fields sets the fields of the plan of a struct. It returns false if the struct needs
// encoding/json: it embeds another one, or has a tag that this package does not know.
func (m *planner) fields(p *plan, t reflect.Type) bool {
	named, ok := namesOf(t)
	if !ok {
		return false
	}
	fields := make([]field, len(named))
	for i, f := range named {
		condition, known := omitted(f.Type, f.options)
		if !known {
			return false
		}
		fields[i] = field{name: f.name, offset: f.Offset, plan: m.plan(f.Type), omitted: condition}
	}
	p.fields = fields
	return true
}

// named is a field of a struct with its name in JSON.
type named struct {
	reflect.StructField
	name    string // with quotes and a colon
	options string // of the tag
}

// namesOf returns the fields of a struct that have JSON. ok is false if the struct needs
// encoding/json: it embeds another one, or has names or options that this package does not know.
func namesOf(t reflect.Type) (fields []named, ok bool) {
	names := map[string]bool{}
	for f := range t.Fields() {
		if f.Anonymous {
			return nil, false
		}
		tag := f.Tag.Get("json")
		if !f.IsExported() || tag == "-" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if name == "" {
			name = f.Name
		}
		if !plain(name) || names[name] || options != "" && options != "omitempty" && options != "omitzero" {
			return nil, false
		}
		names[name] = true
		fields = append(fields, named{f, `"` + name + `":`, options})
	}
	return fields, true
}

// plain reports whether a name has only letters, digits and underscores.
func plain(name string) bool {
	return strings.IndexFunc(name, func(c rune) bool {
		return c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	}) < 0
}

// omitted returns the condition under which the options of a tag leave out a value of the type,
// nil for never. known is false for other options.
func omitted(t reflect.Type, options string) (condition func(unsafe.Pointer) bool, known bool) {
	switch options {
	case "":
		return nil, true
	case "omitempty":
		return empty(t), true
	case "omitzero":
		nilable := t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface
		return zero(t), !nilable || !t.Implements(zeroer)
	}
	return nil, false
}

// empty returns the condition of omitempty, nil for never.
func empty(t reflect.Type) func(unsafe.Pointer) bool {
	switch t.Kind() {
	case reflect.Struct:
		return nil
	case reflect.Slice:
		return func(p unsafe.Pointer) bool { return len(*(*[]struct{})(p)) == 0 }
	case reflect.Map, reflect.Array:
		return func(p unsafe.Pointer) bool { return reflect.NewAt(t, p).Elem().Len() == 0 }
	}
	return zeroMemory(t)
}

// isZeroer is a type that defines its zero value.
type isZeroer interface{ IsZero() bool }

var zeroer = reflect.TypeFor[isZeroer]()

// zero returns the condition of omitzero.
func zero(t reflect.Type) func(unsafe.Pointer) bool {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return func(p unsafe.Pointer) bool { return (*time.Time)(p).IsZero() }
	case t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(zeroer):
		return func(p unsafe.Pointer) bool {
			return reflect.NewAt(t, p).Interface().(isZeroer).IsZero() //nolint:forcetypeassert // checked above
		}
	}
	return zeroMemory(t)
}

// zeroMemory returns the condition of reflect.Value.IsZero.
func zeroMemory(t reflect.Type) func(unsafe.Pointer) bool {
	switch kind := t.Kind(); {
	case kind == reflect.String:
		return func(p unsafe.Pointer) bool { return *(*string)(p) == "" }
	case kind == reflect.Bool:
		return func(p unsafe.Pointer) bool { return !*(*bool)(p) }
	case kind >= reflect.Int && kind <= reflect.Int64:
		size := t.Size()
		return func(p unsafe.Pointer) bool { return intAt(p, size) == 0 }
	case kind == reflect.Pointer || kind == reflect.Map:
		return func(p unsafe.Pointer) bool { return *(*unsafe.Pointer)(p) == nil }
	case kind == reflect.Slice:
		return func(p unsafe.Pointer) bool { return *(*[]struct{})(p) == nil }
	case kind == reflect.Struct && t != reflect.TypeFor[time.Time]():
		return zeroFields(t)
	}
	return func(p unsafe.Pointer) bool { return reflect.NewAt(t, p).Elem().IsZero() }
}

// zeroFields returns the condition that all fields of a struct are zero.
func zeroFields(t reflect.Type) func(unsafe.Pointer) bool {
	type part struct {
		offset uintptr
		zero   func(unsafe.Pointer) bool
	}
	parts := make([]part, t.NumField())
	for i := range parts {
		parts[i] = part{t.Field(i).Offset, zeroMemory(t.Field(i).Type)}
	}
	return func(p unsafe.Pointer) bool {
		for i := range parts {
			if !parts[i].zero(unsafe.Add(p, parts[i].offset)) {
				return false
			}
		}
		return true
	}
}
