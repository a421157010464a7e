package job

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fan"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// Items are the items of a job with children. In a document they are a list, or an object with
// from.
type Items struct {
	List []spec.Value
	// From is the output that has the list; nil for a list in the document.
	From *ItemsFrom
	// File is a file of items beside the file of the job, which the command line reads. A job with
	// it is refused.
	File string
}

// ItemsFrom names the output of a job that the job comes after.
type ItemsFrom struct {
	Job string `json:"job"`
	// Result names a member of the output; see fan.Source.
	Result string `json:"result,omitempty"`
}

// itemsObject is the document form of items with From or File.
type itemsObject struct {
	From *ItemsFrom `json:"from,omitempty"`
	File string     `json:"file,omitempty"`
}

// MarshalJSON returns the document form of the items.
func (i Items) MarshalJSON() ([]byte, error) {
	if i.From != nil || i.File != "" {
		return json.Marshal(itemsObject{From: i.From, File: i.File})
	}
	return json.Marshal(append([]spec.Value{}, i.List...))
}

// UnmarshalJSON reads the document form of items.
func (i *Items) UnmarshalJSON(text []byte) error {
	*i = Items{}
	if len(text) > 0 && text[0] == '[' {
		return json.Unmarshal(text, &i.List)
	}
	var object itemsObject
	if err := json.Unmarshal(text, &object); err != nil {
		return fmt.Errorf("items: %w", err)
	}
	i.From, i.File = object.From, object.File
	return nil
}

func (p *problems) items(n node, to reflect.Value, path string) {
	var items Items
	switch n.kind {
	case kindList:
		p.list(n, reflect.ValueOf(&items.List).Elem(), path)
	case kindObject:
		var object itemsObject
		p.object(n, reflect.ValueOf(&object).Elem(), path)
		if object.File != "" {
			p.bad(join(path, "file"), "a file that the command line reads, want the items, or use sortie jobs apply")
		} else if object.From == nil && !slices.ContainsFunc(n.members, func(m member) bool { return m.name == "from" }) {
			p.bad(path, "object without from, want a list or {from: {job: ID}}")
		}
		items.From, items.File = object.From, object.File
	default:
		p.mismatch(n, path, "a list or {from: {job: ID}}")
	}
	to.Set(reflect.ValueOf(items))
}

// FansOut reports whether the runs of the job have children.
func (d Definition) FansOut() bool { return d.Items != nil || d.Matrix != nil }

// fan returns the description of the children of the runs; nil without children.
func (d Definition) fan() *fan.Spec {
	if !d.FansOut() {
		return nil
	}
	children := &fan.Spec{Parallel: fan.DefaultParallel, Matrix: d.axes()}
	if d.Items != nil {
		children.Items = texts(d.Items.List)
		if from := d.Items.From; from != nil {
			children.From = &fan.Source{JobID: from.Job, Result: from.Result}
		}
	}
	if d.MaxParallel != nil {
		children.Parallel = *d.MaxParallel
	}
	if d.MaxFailures != nil {
		children.MaxFailures = *d.MaxFailures
	}
	children.FailFast = given(d.FailFast)
	return children
}

// axes returns the axes of the matrix, ordered by name.
func (d Definition) axes() (axes []fan.Axis) {
	for _, name := range slices.Sorted(maps.Keys(d.Matrix)) {
		axes = append(axes, fan.Axis{Name: name, Values: texts(d.Matrix[name])})
	}
	return axes
}

func texts(values []spec.Value) (found []string) {
	for _, v := range values {
		found = append(found, v.Text())
	}
	return found
}

// ItemsOf returns the items of a request for a run, as fan.Spec has them. Problems have the field
// items.
func (d Definition) ItemsOf(values []spec.Value) ([]fan.Item, []Problem) {
	p := &problems{}
	for i, v := range values {
		if v == "" || v[0] == '{' || v[0] == '[' || v == "null" {
			p.bad(join("items", strconv.Itoa(i)), "malformed item, want a string, a number or a boolean")
			return nil, p.sorted()
		}
	}
	items := fan.ListOf(texts(values))
	switch err := fan.Check(items); {
	case d.Items == nil:
		p.bad("items", "the job has no items, want a job that declares items")
	case err != nil:
		p.bad("items", "%s", err)
	}
	return items, p.sorted()
}

// validateFan checks the items and the matrix of a job.
func validateFan(d Definition, adHoc bool, p *problems) {
	if !d.FansOut() {
		for _, field := range []struct {
			name  string
			given bool
		}{{"maxParallel", d.MaxParallel != nil}, {"maxFailures", d.MaxFailures != nil}, {"failFast", d.FailFast != nil}} {
			if field.given {
				p.addConflict(field.name, "no meaning without items or matrix; add one, or leave this out")
			}
		}
		return
	}
	at := "items"
	if d.Matrix != nil {
		at = "matrix"
	}
	switch {
	case d.Items != nil && d.Matrix != nil:
		p.addConflict("matrix", "no meaning with items; leave one out")
	case adHoc:
		p.addConflict(at, "a run without a stored job has no children; store a job")
	case d.Export != nil:
		p.addConflict(at, "no meaning with export; leave one out")
	}
	p.within("maxParallel", d.MaxParallel, 1, fan.MaxParallel)
	p.within("maxFailures", d.MaxFailures, 0, fan.MaxChildren)
	if d.Items != nil {
		validateItems(d, p)
	}
	if d.Matrix != nil {
		validateMatrix(d, p)
	}
}

func validateItems(d Definition, p *problems) {
	if err := fan.Check(fan.ListOf(texts(d.Items.List))); err != nil {
		p.bad("items", "%s", err)
	}
	from := d.Items.From
	if from == nil {
		return
	}
	if from.Job == "" {
		p.bad("items.from.job", "missing job, want a job of after")
	} else if !d.ComesAfter(from.Job) {
		p.addConflict("items.from.job", "the job does not come after %q, want a job of after", limit.Cut(from.Job, nameLimit))
	}
	if len(from.Result) > maxResultName || strings.Contains("."+from.Result+".", "..") && from.Result != "" {
		p.bad("items.from.result", "malformed name of a member, want names with dots between them, at most %d bytes", maxResultName)
	}
}

// maxResultName is the length in bytes of the name of a member in an output.
const maxResultName = 255

func validateMatrix(d Definition, p *problems) {
	if len(d.Matrix) == 0 || len(d.Matrix) > fan.MaxAxes {
		p.bad("matrix", "%d axes, want 1 to %d", len(d.Matrix), fan.MaxAxes)
	}
	for name, values := range d.Matrix {
		at := join("matrix", limit.Cut(name, nameLimit))
		if !inputName.MatchString(name) {
			p.bad(at, "malformed name of an axis, want 1 to 64 letters, digits and _, the first no digit")
		}
		if len(values) == 0 {
			p.bad(at, "no values, want at least one")
		}
		seen := map[string]bool{}
		for i, text := range texts(values) {
			if seen[text] {
				p.bad(join(at, strconv.Itoa(i)), "the value %q twice, want each once", limit.Cut(text, nameLimit))
				break
			}
			seen[text] = true
		}
	}
	if p.has("matrix") {
		return
	}
	if fan.Size(d.axes()) > fan.MaxChildren {
		p.bad("matrix", "more than %d combinations, want at most %d", fan.MaxChildren, fan.MaxChildren)
		return
	}
	if err := fan.Check(fan.Product(d.axes())); err != nil {
		p.bad("matrix", "%s", err)
	}
}

// templateNames returns the names that the templates of the job may have, beside those of inputs.
func (d Definition) templateNames() []string {
	names := []string{spec.ScheduledName, spec.RunName}
	if d.FansOut() {
		names = append(names, spec.ItemName, spec.ItemIndexName)
	}
	for _, a := range d.axes() {
		names = append(names, spec.MatrixPrefix+a.Name)
	}
	return names
}
