package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// Parse reads a definition from a JSON or YAML document and validates it for the deployment;
// see Validate. It returns at most a hundred problems, ordered by line. Without problems the
// definition is valid.
func Parse(document []byte, deployment *Deployment) (Definition, []Problem) {
	var d Definition
	p := &problems{lines: map[string]int{}, unread: map[string]bool{}, written: map[string]string{}}
	if len(document) > limit.JobDocument {
		return d, []Problem{{Line: 1, Problem: fmt.Sprintf("document of %d bytes, want at most %d", len(document), limit.JobDocument)}}
	}
	root, problem := readTree(document)
	if problem != nil {
		return d, []Problem{*problem}
	}
	if root.kind != kindObject {
		return d, []Problem{{Line: root.line, Problem: "document is " + string(root.kind) + ", want an object with id and image or export"}}
	}
	p.lines[""] = root.line
	p.decode(root, reflect.ValueOf(&d).Elem(), "")
	if deployment != nil && d.ID == "" {
		d.ID = deployment.ID
	}
	validate(d, deployment, p)
	return d, p.sorted()
}

// Document has the line numbers of a document that Decode has read.
type Document struct{ lines map[string]int }

// LineOf returns the line number of a field, such as "settings.apps.1", or else of the nearest
// object around it.
func (d Document) LineOf(field string) int { return (&problems{lines: d.lines}).lineOf(field) }

// Decode reads a JSON or YAML document into the struct that v points to, with the rules of
// Parse. It returns at most a hundred problems, ordered by line. Fields of embedded structs are
// promoted.
func Decode(document []byte, v any) (Document, []Problem) {
	p := &problems{lines: map[string]int{}, unread: map[string]bool{}, written: map[string]string{}}
	if len(document) > limit.JobDocument {
		return Document{}, []Problem{{Line: 1, Problem: fmt.Sprintf("document of %d bytes, want at most %d", len(document), limit.JobDocument)}}
	}
	root, problem := readTree(document)
	if problem != nil {
		return Document{}, []Problem{*problem}
	}
	p.lines[""] = root.line
	p.decode(root, reflect.ValueOf(v).Elem(), "")
	return Document{p.lines}, p.sorted()
}

// mismatch records a field whose value has the wrong type.
func (p *problems) mismatch(n node, path, want string) {
	got := string(n.kind)
	switch {
	case n.kind == kindNull:
		want += " or no field"
	case n.kind == kindBool, n.kind == kindNumber:
		got = limit.Cut(n.text, nameLimit)
		if want == string(kindText) {
			want += fmt.Sprintf(", such as %q", got)
		}
	case n.kind == kindText:
		got = strconv.Quote(limit.Cut(n.text, nameLimit))
	}
	p.bad(path, "%s, want %s", got, want)
	p.unread[path] = true
}

// nameLimit is the maximum length, in bytes, of a name or value in an error message.
const nameLimit = 64

// decode stores the value of node n in to.
func (p *problems) decode(n node, to reflect.Value, path string) {
	switch to.Addr().Interface().(type) {
	case *Variable:
		p.variable(n, to, path)
		return
	case *Dependency:
		p.dependency(n, to, path)
		return
	case *Items:
		p.items(n, to, path)
		return
	case *spec.Value:
		if n.kind != kindText && n.kind != kindNumber && n.kind != kindBool {
			p.mismatch(n, path, "a string, a number or a boolean")
			return
		}
		p.decodeAny(n, to, path)
		return
	case *ActionList:
		p.actionList(n, to, path)
		return
	case *json.RawMessage:
		if n.kind != kindObject {
			p.mismatch(n, path, string(kindObject))
			return
		}
		p.decodeAny(n, to, path)
		return
	}
	switch to.Kind() {
	case reflect.Pointer:
		value := reflect.New(to.Type().Elem())
		p.decode(n, value.Elem(), path)
		if !p.unread[path] {
			to.Set(value)
		}
	case reflect.Struct:
		p.object(n, to, path)
	case reflect.Map:
		p.entries(n, to, path)
	case reflect.Slice:
		p.list(n, to, path)
	case reflect.Interface:
		p.scalar(n, to, path)
	case reflect.String:
		if n.kind != kindText {
			p.mismatch(n, path, string(kindText))
			return
		}
		to.SetString(n.text)
	case reflect.Bool:
		if n.kind != kindBool {
			p.mismatch(n, path, string(kindBool))
			return
		}
		to.SetBool(n.text == "true")
	default:
		p.number(n, to, path)
	}
}

// number stores an integer or a floating-point number. 3.0 and 3e0 are integers, as in JSON
// Schema. A number that is too large becomes the largest one, which is out of every range.
func (p *problems) number(n node, to reflect.Value, path string) {
	want := "a number"
	if to.Kind() == reflect.Int {
		want = "an integer"
	}
	value, err := strconv.ParseFloat(n.text, 64)
	if n.kind != kindNumber || err != nil && !errors.Is(err, strconv.ErrRange) {
		p.mismatch(n, path, want)
		return
	}
	if to.Kind() == reflect.Float64 {
		to.SetFloat(min(max(value, -math.MaxFloat64), math.MaxFloat64))
		return
	}
	if value != math.Trunc(value) {
		p.mismatch(n, path, want)
		return
	}
	const exact = 1 << 53
	if math.Abs(value) >= exact {
		p.written[path] = limit.Cut(n.text, nameLimit)
	}
	to.SetInt(int64(min(max(value, -exact), exact)))
}

func (p *problems) object(n node, to reflect.Value, path string) {
	if n.kind != kindObject {
		want := string(kindObject)
		if path != "" {
			want += " of " + strings.Join(fieldNames(to.Type()), ", ")
		}
		p.mismatch(n, path, want)
		return
	}
	p.members(n, path, func(m member, at string) {
		if p.full() {
			return
		}
		for _, field := range reflect.VisibleFields(to.Type()) {
			if name := fieldName(field); name != "" && name == m.name {
				p.decode(m.value, to.FieldByIndex(field.Index), at)
				return
			}
		}
		names := fieldNames(to.Type())
		if meant := limit.Nearest(m.name, names); meant != "" {
			p.bad(at, "unknown field, did you mean %s?", meant)
			return
		}
		p.bad(at, "unknown field, want one of %s", strings.Join(names, ", "))
	})
}

// fieldName returns the name of a field in documents, or "" for an embedded struct.
func fieldName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}

// fieldNames returns the names of the fields of a struct in documents.
func fieldNames(of reflect.Type) []string {
	var names []string
	for _, field := range reflect.VisibleFields(of) {
		if name := fieldName(field); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// members calls read once for each member and records its line. It reports duplicate members.
func (p *problems) members(n node, path string, read func(m member, at string)) {
	seen := map[string]int{}
	for _, m := range n.members {
		at := join(path, limit.Cut(m.name, nameLimit))
		if first, ok := seen[m.name]; ok {
			p.add(Problem{Field: at, Line: m.line, Problem: fmt.Sprintf("duplicate field, want one; the first is on line %d", first)})
			continue
		}
		seen[m.name] = m.line
		p.lines[at] = m.line
		read(m, at)
	}
}

func (p *problems) entries(n node, to reflect.Value, path string) {
	if n.kind != kindObject {
		p.mismatch(n, path, string(kindObject))
		return
	}
	entries := reflect.MakeMap(to.Type())
	p.members(n, path, func(m member, at string) {
		value := reflect.New(to.Type().Elem()).Elem()
		p.decode(m.value, value, at)
		entries.SetMapIndex(reflect.ValueOf(m.name).Convert(to.Type().Key()), value)
	})
	to.Set(entries)
}

func (p *problems) list(n node, to reflect.Value, path string) {
	if n.kind != kindList {
		p.mismatch(n, path, string(kindList))
		return
	}
	items := reflect.MakeSlice(to.Type(), len(n.items), len(n.items))
	for i, item := range n.items {
		at := join(path, strconv.Itoa(i))
		p.lines[at] = item.line
		p.decode(item, items.Index(i), at)
	}
	to.Set(items)
}

// scalar stores a string or a number, or the variables object of trigger_job.
func (p *problems) scalar(n node, to reflect.Value, path string) {
	if nested := n.kind == kindObject && strings.HasSuffix(path, ".parameters.parameters"); nested {
		p.decodeAny(n, to, path)
		return
	}
	if n.kind != kindText && n.kind != kindNumber {
		p.mismatch(n, path, "a string or a number")
		return
	}
	p.decodeAny(n, to, path)
}

// decodeAny stores a value of any JSON type.
func (p *problems) decodeAny(n node, to reflect.Value, path string) {
	text, err := json.Marshal(p.plain(n, path))
	if err == nil {
		err = json.Unmarshal(text, to.Addr().Interface())
	}
	if err != nil {
		p.mismatch(n, path, "numbers that JSON can represent")
	}
}

// plain returns the value in the types that encoding/json decodes.
func (p *problems) plain(n node, path string) any {
	switch n.kind {
	case kindNull:
		return nil
	case kindBool:
		return n.text == "true"
	case kindNumber:
		return json.Number(n.text)
	case kindText:
		return n.text
	case kindList:
		list := []any{}
		for i, item := range n.items {
			list = append(list, p.plain(item, join(path, strconv.Itoa(i))))
		}
		return list
	}
	object := map[string]any{}
	p.members(n, path, func(m member, at string) { object[m.name] = p.plain(m.value, at) })
	return object
}

func (p *problems) variable(n node, to reflect.Value, path string) {
	switch {
	case n.kind == kindText:
		to.Set(reflect.ValueOf(Variable{Value: n.text}))
	case n.kind == kindObject:
		var secret secretReference
		p.object(n, reflect.ValueOf(&secret).Elem(), path)
		if secret.SecretRef == "" {
			p.bad(path, "object without secretRef, want a string or {secretRef: NAME}")
		}
		to.Set(reflect.ValueOf(Variable{SecretRef: secret.SecretRef}))
	default:
		p.mismatch(n, path, string(kindText))
	}
}
