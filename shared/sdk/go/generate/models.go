package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// models makes types of schemas.
type models struct {
	schemas *object
	made    map[string]*object
	text    strings.Builder
}

// kind is the type of a value in Go.
type kind struct {
	name     string
	nullable bool
	// structure means a struct; nilable a type with a nil; text a string.
	structure, nilable, text bool
}

var anything = kind{name: "any", nilable: true}

func (m *models) generate() string {
	for _, name := range m.schemas.keys {
		schema := m.schemas.object(name)
		switch {
		case m.isStruct(schema):
			m.make(name, schema)
		case schema.has("enum"):
			m.makeEnum(name, schema)
		}
	}
	imports := ""
	if strings.Contains(m.text.String(), "time.Time") {
		imports = "import \"time\"\n\n"
	}
	return "package api\n\n" + imports + m.text.String()
}

func (m *models) makeEnum(name string, schema *object) {
	m.text.WriteString(comment(name+" is one of the constants below. Later servers may add values. "+sentence(schema.text("description")), ""))
	fmt.Fprintf(&m.text, "type %s string\n\n// The values of %s.\nconst (\n", name, name)
	for _, value := range schema.list("enum") {
		if text, ok := value.(string); ok {
			fmt.Fprintf(&m.text, "\t%s%s %s = %q\n", name, goName(strings.ToLower(text[:1])+text[1:]), name, text)
		}
	}
	m.text.WriteString(")\n\n")
}

func (m *models) resolve(schema *object) *object {
	for schema.ref() != "" {
		schema = m.schemas.object(schema.ref())
	}
	return schema
}

// property is a member of an object, and the schema that declares it.
type property struct {
	name, origin string
	schema       any
}

// members returns the members of an object with those of its parts, and the required ones.
func (m *models) members(schema *object, origin string) (list []property, required []string) {
	add := func(p property) {
		if i := slices.IndexFunc(list, func(other property) bool { return other.name == p.name }); i >= 0 {
			list[i] = p
			return
		}
		list = append(list, p)
	}
	for _, part := range schema.objects("allOf") {
		if part.has("if") {
			continue
		}
		from := origin
		if part.ref() != "" {
			from = part.ref()
		}
		inner, names := m.members(m.resolve(part), from)
		for _, p := range inner {
			add(p)
		}
		required = append(required, names...)
	}
	if properties := schema.object("properties"); properties != nil {
		for _, name := range properties.keys {
			add(property{name, origin, properties.values[name]})
		}
	}
	for _, name := range schema.list("required") {
		required = append(required, fmt.Sprint(name))
	}
	return list, required
}

// isStruct reports whether a schema is an object with known members.
func (m *models) isStruct(schema *object) bool {
	if schema == nil || schema.ref() != "" {
		return false
	}
	list, _ := m.members(schema, "")
	types := typesOf(schema)
	return len(list) > 0 && (len(types) == 0 || slices.Contains(types, "object"))
}

func typesOf(schema *object) []string {
	if one := schema.text("type"); one != "" {
		return []string{one}
	}
	var list []string
	for _, value := range schema.list("type") {
		list = append(list, fmt.Sprint(value))
	}
	return list
}

// make writes the struct of a schema.
func (m *models) make(name string, schema *object) {
	if m.made[name] != nil {
		if m.made[name] != schema {
			panic("two types have the name " + name)
		}
		return
	}
	m.made[name] = schema
	list, required := m.members(schema, name)
	var fields strings.Builder
	for _, p := range list {
		m.field(&fields, p, slices.Contains(required, p.name))
	}
	text := "is an object of the API."
	if description := schema.text("description"); description != "" {
		text = "is an object of the API. " + sentence(description)
	}
	m.text.WriteString(comment(name+" "+text, ""))
	fmt.Fprintf(&m.text, "type %s struct {\n%s}\n\n", name, fields.String())
}

func (m *models) field(b *strings.Builder, p property, required bool) {
	context := p.origin + goName(p.name)
	k := m.kind(p.schema, context)
	schema, _ := p.schema.(*object)
	text := schema.text("description")
	resolved := m.resolve(schema)
	if values := resolved.list("enum"); len(values) > 0 && k.name == "string" {
		text = sentence(text) + " One of " + joined(values) + "; later servers may add values."
	}
	if resolved.has("const") {
		text = sentence(text) + fmt.Sprintf(" Always %v.", resolved.get("const"))
	}
	if strings.TrimSpace(text) != "" {
		b.WriteString(comment(sentence(text), "\t"))
	}
	name, option := k.name, ""
	switch {
	case required && !k.nullable, k.nilable:
	case k.nullable, !k.text && k.name != "time.Time":
		name = "*" + name
	}
	if !required {
		option = ",omitzero"
	}
	fmt.Fprintf(b, "\t%s %s `json:\"%s%s\"`\n", goName(p.name), name, p.name, option)
}

func joined(values []any) string {
	var texts []string
	for _, value := range values {
		if value != nil {
			texts = append(texts, fmt.Sprint(value))
		}
	}
	return strings.Join(texts, ", ")
}

// kind returns the type of a schema. context is the name of a struct that it may need.
func (m *models) kind(value any, context string) kind {
	schema, ok := value.(*object)
	if !ok || len(schema.keys) == 0 {
		return anything
	}
	if name := schema.ref(); name != "" {
		target := m.schemas.object(name)
		switch {
		case m.isStruct(target):
			return kind{name: name, structure: true}
		case target.has("enum"):
			return kind{name: name, text: true}
		}
		return m.kind(target, name)
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		if parts := schema.objects(key); len(parts) > 0 && !schema.has("properties") && !schema.has("allOf") && slices.ContainsFunc(parts, func(o *object) bool { return o.has("type") || o.has("$ref") }) {
			return m.union(parts, context)
		}
	}
	if parts := schema.objects("allOf"); len(parts) > 0 && !schema.has("properties") && (!m.isStruct(schema) || len(parts) == 1) {
		return m.kind(parts[0], context)
	}
	types := typesOf(schema)
	nullable := slices.Contains(types, "null")
	types = slices.DeleteFunc(types, func(name string) bool { return name == "null" })
	if len(types) > 1 {
		return anything
	}
	k := m.single(schema, types, context)
	k.nullable = k.nullable || nullable
	return k
}

func (m *models) union(parts []*object, context string) kind {
	rest := slices.DeleteFunc(slices.Clone(parts), func(o *object) bool { return o.text("type") == "null" })
	if len(rest) != 1 {
		for i, part := range rest { // the structs are of use although the field is of any type
			if m.isStruct(part) {
				m.make(context+strconv.Itoa(i+1), part)
			}
		}
		return anything
	}
	k := m.kind(rest[0], context)
	k.nullable = k.nullable || len(rest) < len(parts)
	return k
}

func (m *models) single(schema *object, types []string, context string) kind {
	if m.isStruct(schema) {
		m.make(context, schema)
		return kind{name: context, structure: true}
	}
	name := ""
	if len(types) == 1 {
		name = types[0]
	}
	if value := schema.get("const"); name == "" && value != nil {
		name = map[bool]string{true: "string", false: "boolean"}[fmt.Sprintf("%T", value) == "string"]
	}
	if name == "" && schema.has("enum") {
		name = "string"
	}
	switch name {
	case "string":
		switch {
		case schema.text("format") == "date-time":
			return kind{name: "time.Time"}
		case schema.text("contentEncoding") == "base64":
			return kind{name: "[]byte", nilable: true}
		}
		return kind{name: "string", text: true}
	case "integer":
		return kind{name: "int64"}
	case "number":
		return kind{name: "float64"}
	case "boolean":
		return kind{name: "bool"}
	case "array":
		inner := m.kind(schema.get("items"), context+"Item")
		return kind{name: "[]" + inner.pointer(), nilable: true}
	case "object":
		inner := anything
		if more := schema.object("additionalProperties"); more != nil && len(more.keys) > 0 {
			inner = m.kind(more, context+"Value")
		}
		return kind{name: "map[string]" + inner.pointer(), nilable: true}
	}
	return anything
}

// pointer returns the type with a pointer if null is a value.
func (k kind) pointer() string {
	if k.nullable && !k.nilable {
		return "*" + k.name
	}
	return k.name
}

// codes returns the constants of the codes of problems.
func codes(root *object) string {
	found := map[string]bool{}
	var walk func(any)
	walk = func(value any) {
		switch v := value.(type) {
		case *object:
			if code := v.object("properties").object("code"); code != nil {
				for _, one := range append(code.list("enum"), code.get("const")) {
					if text, ok := one.(string); ok && text == strings.ToUpper(text) {
						found[text] = true
					}
				}
			}
			for _, key := range v.keys {
				walk(v.values[key])
			}
		case []any:
			for _, one := range v {
				walk(one)
			}
		}
	}
	walk(root.object("paths"))
	walk(root.object("components").object("responses"))
	var b strings.Builder
	b.WriteString("package api\n\n// The codes of problem documents. Later servers may add codes.\nconst (\n")
	for _, code := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprintf(&b, "\tCode%s = %q\n", goName(strings.ToLower(code)), code)
	}
	b.WriteString(")\n")
	return b.String()
}
