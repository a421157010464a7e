// Package apicheck compares HTTP exchanges with the OpenAPI document, for tests.
//
// A response must be documented for its operation: its status, its headers (all required ones
// and no unknown ones), its content type, and a JSON body that matches the schema. The body of
// a successful request must match, too. A test whose client uses Transport also checks the API.
//
// The package does not check bodies that are not JSON. It rejects a document with unresolved
// references.
package apicheck

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Document is an OpenAPI 3.1 document. It is safe for concurrent use.
type Document struct {
	root       map[string]any
	operations []Operation

	mu       sync.Mutex
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema
}

// Operation is a method of a path in the document.
type Operation struct {
	Method, Path string
	// Query lists the query parameters, sorted.
	Query []string
	// Credentials lists the alternative security schemes, sorted; "" means that no credential
	// is required.
	Credentials []string
	// Scopes lists the scopes that a client token needs.
	Scopes []string

	pointer string
}

const resource = "openapi.json"

// Load parses a YAML or JSON document and compiles its schemas.
func Load(text []byte) (*Document, error) {
	asJSON, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, fmt.Errorf("cannot read the document: %w", err)
	}
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		return nil, fmt.Errorf("cannot read the document: %w", err)
	}
	root, ok := parsed.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the document is not an object")
	}
	d := &Document{root: root, compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}}
	d.compiler.DefaultDraft(jsonschema.Draft2020)
	d.compiler.AssertFormat()
	if err := d.compiler.AddResource(resource, root); err != nil {
		return nil, fmt.Errorf("cannot read the document: %w", err)
	}
	if err := d.compileAll(root, ""); err != nil {
		return nil, err
	}
	d.operations = d.list()
	return d, nil
}

// compileAll compiles the component schemas and all values of a key "schema". It also resolves
// all references.
func (d *Document) compileAll(node any, pointer string) error {
	switch node := node.(type) {
	case map[string]any:
		for name, child := range node {
			at := pointer + "/" + escape(name)
			if name == "schema" || pointer == "/components/schemas" {
				if _, err := d.schema(at); err != nil {
					return err
				}
				continue
			}
			if ref, ok := child.(string); ok && name == "$ref" {
				if _, _, err := d.find(strings.TrimPrefix(ref, "#")); err != nil {
					return err
				}
			}
			if err := d.compileAll(child, at); err != nil {
				return err
			}
		}
	case []any:
		for i, child := range node {
			if err := d.compileAll(child, fmt.Sprintf("%s/%d", pointer, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *Document) schema(pointer string) (*jsonschema.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.schemas[pointer]; s != nil {
		return s, nil
	}
	s, err := d.compiler.Compile(resource + "#" + strings.ReplaceAll(strings.ReplaceAll(pointer, "{", "%7B"), "}", "%7D"))
	if err != nil {
		return nil, fmt.Errorf("cannot compile the schema at %s: %w", pointer, err)
	}
	d.schemas[pointer] = s
	return s, nil
}

func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// find returns the object at a JSON pointer, and its pointer. It follows a reference, except to
// a component schema.
func (d *Document) find(pointer string) (object map[string]any, at string, err error) {
	var node any = d.root
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		parent, _ := node.(map[string]any)
		name := strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		child, ok := parent[name]
		if !ok {
			return nil, "", fmt.Errorf("unresolved reference %s", pointer)
		}
		node = child
	}
	object, ok := node.(map[string]any)
	if !ok {
		return nil, "", fmt.Errorf("%s is not an object", pointer)
	}
	if ref, ok := object["$ref"].(string); ok && !strings.HasPrefix(ref, "#/components/schemas/") {
		return d.find(strings.TrimPrefix(ref, "#"))
	}
	return object, pointer, nil
}

// Operations lists the operations of the document, sorted by path and method.
func (d *Document) Operations() []Operation { return slices.Clone(d.operations) }

func (d *Document) list() []Operation {
	var all []Operation
	paths, _ := d.root["paths"].(map[string]any)
	for path, item := range paths {
		methods, _ := item.(map[string]any)
		for method := range methods {
			pointer := "/paths/" + escape(path) + "/" + method
			op := Operation{Method: strings.ToUpper(method), Path: path, pointer: pointer}
			op.Query = d.query(pointer)
			op.Credentials, op.Scopes = d.credentials(pointer)
			all = append(all, op)
		}
	}
	slices.SortFunc(all, func(a, b Operation) int { return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method) })
	return all
}

func (d *Document) query(pointer string) []string {
	var names []string
	op, _, _ := d.find(pointer)
	parameters, _ := op["parameters"].([]any)
	for _, p := range parameters {
		parameter, _ := p.(map[string]any)
		if ref, ok := parameter["$ref"].(string); ok {
			parameter, _, _ = d.find(strings.TrimPrefix(ref, "#"))
		}
		if name, _ := parameter["name"].(string); parameter["in"] == "query" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (d *Document) credentials(pointer string) (names, scopes []string) {
	op, _, _ := d.find(pointer)
	security, own := op["security"].([]any)
	if !own {
		security, _ = d.root["security"].([]any)
	}
	for _, s := range security {
		scheme, _ := s.(map[string]any)
		if len(scheme) == 0 {
			names = append(names, "")
		}
		for name, roles := range scheme {
			names = append(names, name)
			list, _ := roles.([]any)
			for _, role := range list {
				scopes = append(scopes, fmt.Sprint(role))
			}
		}
	}
	slices.Sort(names)
	return names, scopes
}

// operation returns the operation of a request. It prefers paths without parameters, and uses
// GET for an undocumented HEAD.
func (d *Document) operation(r *http.Request) (Operation, bool) {
	var found Operation
	for _, op := range d.operations {
		if !fits(op.Path, r.URL.EscapedPath()) || found.Method == r.Method && !strings.Contains(found.Path, "{") {
			continue
		}
		if op.Method == r.Method || r.Method == http.MethodHead && op.Method == http.MethodGet && found.Method == "" {
			found = op
		}
	}
	return found, found.Method != ""
}

func fits(pattern, path string) bool {
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(have) {
		return false
	}
	for i := range want {
		if want[i] != have[i] && (!strings.HasPrefix(want[i], "{") || have[i] == "") {
			return false
		}
	}
	return true
}
