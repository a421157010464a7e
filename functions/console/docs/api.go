package docs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// openAPI has the parts of an OpenAPI document that the reference shows.
type openAPI struct {
	Info       struct{ Version, Description string }
	Tags       []struct{ Name, Description string }
	Paths      map[string]map[string]operation
	Components struct {
		Parameters map[string]parameter
		Responses  map[string]response
	}
}

type operation struct {
	ID                   string `yaml:"operationId"`
	Summary, Description string
	Tags                 []string
	Security             []map[string][]string
	Parameters           []parameter
	Body                 response `yaml:"requestBody"`
	Responses            map[string]response
}

type parameter struct {
	Ref                   string `yaml:"$ref"`
	Name, In, Description string
	Required              bool
}

type response struct {
	Ref         string `yaml:"$ref"`
	Description string
	Content     map[string]struct {
		Schema struct {
			Ref string `yaml:"$ref"`
		}
	}
}

// last returns the last part of a reference.
func last(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

// line returns a description as one line of a table.
func line(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "\\|")
}

// apiText returns the reference of an OpenAPI document as Markdown.
func apiText(document []byte) ([]byte, error) {
	var api openAPI
	if err := yaml.Unmarshal(document, &api); err != nil {
		return nil, fmt.Errorf("cannot read the OpenAPI document: %w", err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "# API, version %s\n\n%s\n", api.Info.Version, api.Info.Description)
	for _, tag := range api.Tags {
		fmt.Fprintf(&text, "\n## %s\n\n%s\n", tag.Name, tag.Description)
		for _, path := range slices.Sorted(maps.Keys(api.Paths)) {
			for _, method := range []string{"get", "post", "put", "patch", "delete"} {
				if op, ok := api.Paths[path][method]; ok && slices.Contains(op.Tags, tag.Name) {
					api.operation(&text, method, path, op)
				}
			}
		}
	}
	return []byte(text.String()), nil
}

func (api openAPI) operation(text *strings.Builder, method, path string, op operation) {
	fmt.Fprintf(text, "\n### %s\n\n`%s %s`", op.ID, strings.ToUpper(method), path)
	for _, scheme := range op.Security {
		if scopes := slices.Concat(slices.Collect(maps.Values(scheme))...); len(scopes) > 0 {
			fmt.Fprintf(text, ", scope `%s`", strings.Join(scopes, "`, `"))
		}
	}
	fmt.Fprintf(text, "\n\n%s.\n\n%s\n\n", op.Summary, op.Description)
	if len(op.Parameters) > 0 {
		text.WriteString("| parameter | in | |\n|---|---|---|\n")
	}
	for _, p := range op.Parameters {
		if p.Ref != "" {
			p = api.Components.Parameters[last(p.Ref)]
		}
		required := ""
		if p.Required {
			required = "Required. "
		}
		fmt.Fprintf(text, "| `%s` | %s | %s%s |\n", p.Name, p.In, required, line(p.Description))
	}
	if len(op.Body.Content) > 0 {
		fmt.Fprintf(text, "\nBody: %s.\n", content(op.Body))
	}
	text.WriteString("\n| status | | content |\n|---|---|---|\n")
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		r := op.Responses[status]
		if r.Ref != "" {
			r = api.Components.Responses[last(r.Ref)]
		}
		fmt.Fprintf(text, "| %s | %s | %s |\n", status, line(r.Description), content(r))
	}
}

// content names the forms of a body, with the schemas that openapi.yaml has for them.
func content(r response) string {
	var forms []string
	for _, kind := range slices.Sorted(maps.Keys(r.Content)) {
		if schema := last(r.Content[kind].Schema.Ref); schema != "" {
			kind = schema + "` as `" + kind
		}
		forms = append(forms, "`"+kind+"`")
	}
	return cmp.Or(strings.Join(forms, ", "), "none")
}
