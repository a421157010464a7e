package main

import (
	"fmt"
	"slices"
	"strings"
)

// calls makes the methods of the client.
type calls struct {
	root   *object
	models *models
}

var verbs = []string{"get", "head", "post", "put", "patch", "delete"}

// operation is one operation of the document.
type operation struct {
	*object
	id, verb, path string
	service, name  string
	parameters     []*object
}

func (c *calls) generate() (string, error) {
	methods := map[string]*strings.Builder{}
	var queries, table strings.Builder
	paths := c.root.object("paths")
	for _, path := range paths.keys {
		for _, verb := range verbs {
			o := paths.object(path).object(verb)
			if o == nil {
				continue
			}
			op := operation{object: o, id: o.text("operationId"), verb: strings.ToUpper(verb), path: path}
			var found bool
			op.service, op.name, found = strings.Cut(names[op.id], ".")
			if !found {
				return "", fmt.Errorf("operation %s has no method: name one in names.go", op.id)
			}
			for _, p := range o.objects("parameters") {
				if name := p.ref(); name != "" {
					p = c.root.object("components").object("parameters").object(name)
				}
				op.parameters = append(op.parameters, p)
			}
			fmt.Fprintf(&table, "\t%q: {%q, %q, %q},\n", op.id, op.verb, op.path, names[op.id])
			if slices.Contains(handWritten, op.id) {
				continue
			}
			if methods[op.service] == nil {
				methods[op.service] = &strings.Builder{}
			}
			if err := c.method(methods[op.service], &queries, op); err != nil {
				return "", err
			}
		}
	}
	var b strings.Builder
	b.WriteString("package client\n\nimport (\n\t\"context\"\n\t\"net/url\"\n\t\"time\"\n\n\t\"github.com/sortie-dev/sortie/shared/sdk/go/api\"\n)\n\n")
	b.WriteString("// operations are the operations of the API: verb, path, method of the client.\nvar operations = map[string][3]string{\n" + table.String() + "}\n\n")
	b.WriteString("// Client calls one server. It is safe for concurrent use.\ntype Client struct {\n\ttransport *transport\n\n")
	for _, s := range services {
		fmt.Fprintf(&b, "\t%s %s\n", s.name, s.name)
	}
	b.WriteString("}\n\nfunc newClient(t *transport) *Client {\n\treturn &Client{\n\t\ttransport: t,\n")
	for _, s := range services {
		fmt.Fprintf(&b, "\t\t%s: %s{t},\n", s.name, s.name)
	}
	b.WriteString("\t}\n}\n\n")
	for _, s := range services {
		b.WriteString(comment(s.name+" "+s.text+".", ""))
		fmt.Fprintf(&b, "type %s struct{ t *transport }\n\n", s.name)
		if methods[s.name] != nil {
			b.WriteString(methods[s.name].String())
		}
	}
	b.WriteString(queries.String())
	return b.String(), nil
}

func (c *calls) method(b, queries *strings.Builder, op operation) error {
	answer, err := c.answer(op)
	if err != nil {
		return err
	}
	arguments, fields, inQuery := c.parameters(op)
	if body := op.object.object("requestBody"); body != nil {
		if typed := c.body(body); typed != "" {
			arguments = append(arguments, "body "+typed)
			fields = append(fields, map[bool]string{true: "body: body", false: "body: bodyOf(body)"}[typed == "any"])
		}
		if body.object("content").has("application/merge-patch+json") {
			fields = append(fields, `mediaType: "application/merge-patch+json"`)
		}
	}
	if len(inQuery) > 0 {
		query := op.service + op.name + "Query"
		arguments = append(arguments, "query "+query)
		fields = append(fields, "query: query.values()")
		c.query(queries, query, op, inQuery)
	}
	arguments = append(arguments, "options ...Option")
	text := sentence(lower(strings.TrimSpace(op.text("summary"))))
	if more := strings.TrimSpace(op.text("description")); more != "" {
		text += "\n\n" + sentence(more)
	}
	if op.object.get("summary") == nil {
		text = op.id + "."
	}
	b.WriteString(comment(fmt.Sprintf("%s calls %s %s: %s", op.name, op.verb, op.path, text), ""))
	signature := fmt.Sprintf("func (s %s) %s(", op.service, op.name)
	what := "call{" + strings.Join(fields, ", ") + "}"
	if items, next, ok := c.pages(op, answer); ok {
		c.list(b, op, items, next, answer, fmt.Sprintf("%s%s)", signature, strings.Join(arguments[1:], ", ")), what)
		return nil
	}
	signature += strings.Join(arguments, ", ") + ") "
	switch answer {
	case "":
		fmt.Fprintf(b, "%serror {\n\treturn sendEmpty(ctx, s.t, %s, options)\n}\n\n", signature, what)
	case "text":
		fmt.Fprintf(b, "%s(string, error) {\n\treturn sendText(ctx, s.t, %s, options)\n}\n\n", signature, what)
	case "object":
		fmt.Fprintf(b, "%s(map[string]any, error) {\n\treturn sendObject(ctx, s.t, %s, options)\n}\n\n", signature, what)
	default:
		fmt.Fprintf(b, "%s(*api.%s, error) {\n\treturn sendJSON[api.%s](ctx, s.t, %s, options)\n}\n\n", signature, answer, answer, what)
	}
	return nil
}

// parameters returns the arguments of the method and the fields of its call that come from
// parameters in the path and the header, and the parameters in the query.
func (c *calls) parameters(op operation) (arguments, fields []string, inQuery []*object) {
	arguments = []string{"ctx context.Context"}
	fields = []string{fmt.Sprintf("method: %q", op.verb)}
	var inPath []*object
	for _, p := range op.parameters {
		switch p.text("in") {
		case "path":
			inPath = append(inPath, p)
		case "query":
			if p.text("name") != "token" {
				inQuery = append(inQuery, p)
			}
		case "header":
			if p.text("name") == "Idempotency-Key" {
				fields = append(fields, "keyed: true")
			}
		}
	}
	if slices.Contains(repeatable, op.id) {
		fields = append(fields, "repeatable: true")
	}
	path := fmt.Sprintf("path: %q", op.path)
	if len(inPath) > 0 {
		path = fmt.Sprintf("path: pathOf(%q", op.path)
		for _, p := range inPath {
			name, typed := lower(goName(p.text("name"))), "string"
			k := c.models.kind(p.get("schema"), "")
			if k.name == "int64" {
				typed = "int64"
			} else if k.text && k.name != "string" {
				typed = "api." + k.name
			}
			arguments = append(arguments, name+" "+typed)
			path += ", " + name
		}
		path += ")"
	}
	return arguments, append(fields, path), inQuery
}

// list writes the body of a method that returns all pages of a list.
func (c *calls) list(b *strings.Builder, op operation, items, next property, answer, signature, what string) {
	item := c.models.kind(items.schema, "").name
	fmt.Fprintf(b, "%s *Pages[api.%s, api.%s] {\n", signature, strings.TrimPrefix(item, "[]"), answer)
	place := "page.Cursor = place"
	if c.cursor(op) == "after" {
		place = "page.After = " + map[bool]string{true: "numberOf(place)", false: "place"}[c.models.kind(next.schema, "").name == "int64"]
	}
	fmt.Fprintf(b, "\treturn &Pages[api.%s, api.%s]{\n\t\tfetch: func(ctx context.Context, place string) (*api.%s, error) {\n", strings.TrimPrefix(item, "[]"), answer, answer)
	fmt.Fprintf(b, "\t\t\tpage := query\n\t\t\tif place != \"\" {\n\t\t\t\t%s\n\t\t\t}\n\t\t\treturn sendJSON[api.%s](ctx, s.t, %s, options)\n\t\t},\n", place, answer, strings.Replace(what, "query.values()", "page.values()", 1))
	fmt.Fprintf(b, "\t\tsplit: func(p *api.%s) ([]api.%s, string) { return p.%s, placeOf(p.%s) },\n\t}\n}\n\n", answer, strings.TrimPrefix(item, "[]"), goName(items.name), goName(next.name))
}

func lower(text string) string {
	if text == "ID" {
		return "id"
	}
	if len(text) > 1 && text[1] >= 'A' && text[1] <= 'Z' {
		return text
	}
	return strings.ToLower(text[:1]) + text[1:]
}

// answer returns the type of an answer: a struct, "object", "text" or "".
func (c *calls) answer(op operation) (string, error) {
	responses := op.object.object("responses")
	for _, status := range responses.keys {
		if status >= "300" {
			continue
		}
		response := responses.object(status)
		if name := response.ref(); name != "" {
			response = c.root.object("components").object("responses").object(name)
		}
		content := response.object("content")
		if content == nil {
			return "", nil
		}
		if !content.has("application/json") {
			if strings.Contains(strings.Join(content.keys, " "), "json") {
				return "object", nil
			}
			return "text", nil
		}
		schema := content.object("application/json").object("schema")
		if parts := schema.objects("allOf"); len(parts) > 0 {
			schema = parts[0]
		}
		if schema.ref() == "" {
			return "object", nil
		}
		return schema.ref(), nil
	}
	return "", fmt.Errorf("operation %s has no answer", op.id)
}

func (c *calls) body(body *object) string {
	schema := body.object("content").object("application/json").object("schema")
	if name := schema.ref(); name != "" {
		return "*api." + name
	}
	if closed, ok := schema.get("additionalProperties").(bool); ok && !closed {
		return "" // an empty object
	}
	return "any"
}

func (c *calls) query(b *strings.Builder, name string, op operation, parameters []*object) {
	b.WriteString(comment(name+" selects what "+op.service+"."+op.name+" returns. The zero value of a field leaves it out.", ""))
	fmt.Fprintf(b, "type %s struct {\n", name)
	var values strings.Builder
	for _, p := range parameters {
		k, key := c.models.kind(p.get("schema"), ""), p.text("name")
		field, typed, set := goName(key), k.name, "setText(v, %q, string(q.%s))"
		switch {
		case k.name == "int64":
			set = "setNumber(v, %q, q.%s)"
		case k.name == "bool":
			typed, set = "*bool", "setBool(v, %q, q.%s)"
		case k.name == "time.Time":
			set = "setTime(v, %q, q.%s)"
		case strings.HasPrefix(k.name, "[]"):
			typed, set = "[]string", "setList(v, %q, q.%s)"
		case k.text && k.name != "string":
			typed = "api." + k.name
		default:
			typed = "string"
			set = "setText(v, %q, q.%s)"
		}
		if text := p.text("description"); text != "" {
			b.WriteString(comment(sentence(text), "\t"))
		}
		fmt.Fprintf(b, "\t%s %s\n", field, typed)
		fmt.Fprintf(&values, "\t"+set+"\n", key, field)
	}
	fmt.Fprintf(b, "}\n\nfunc (q %s) values() url.Values {\n\tv := url.Values{}\n%s\treturn v\n}\n\n", name, values.String())
}

// cursor returns the name of the parameter with which a list continues.
func (c *calls) cursor(op operation) string {
	for _, p := range op.parameters {
		if name := p.text("name"); name == "cursor" || name == "after" {
			return name
		}
	}
	return ""
}

// pages returns the members of an answer with the items and the place of the next page.
func (c *calls) pages(op operation, answer string) (items, next property, ok bool) {
	schema := c.models.schemas.object(answer)
	if c.cursor(op) == "" || schema == nil {
		return items, next, false
	}
	list, _ := c.models.members(schema, answer)
	for _, p := range list {
		one, _ := p.schema.(*object)
		switch {
		case slices.Contains([]string{"nextCursor", "next_cursor", "nextAfter", "next"}, p.name):
			next, ok = p, true
		case one.text("type") == "array" && items.name == "":
			items = p
		}
	}
	return items, next, ok && items.name != ""
}
