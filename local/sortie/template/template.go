// Package template reads a synthesised CloudFormation template, to compare it with a deployed
// one, for tests and for measurements.
//
// It resolves the functions that this stack uses (Ref, Fn::GetAtt, Fn::Join) and
// leaves everything else unchanged. It is not a model of CloudFormation.
package template

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// Template is a CloudFormation template.
type Template struct {
	// Text is the whole template, as JSON.
	Text      string `json:"-"`
	Resources map[string]*Resource
	Outputs   map[string]Output
}

// Resource is one resource of a template.
type Resource struct {
	// ID is the logical id.
	ID                  string `json:"-"`
	Type                string
	Properties          map[string]any
	DeletionPolicy      string
	UpdateReplacePolicy string
}

// Retained reports whether the resource is kept when the stack is deleted.
func (r *Resource) Retained() bool {
	return r.DeletionPolicy == "Retain" || r.DeletionPolicy == "RetainExceptOnCreate"
}

// Output is one output of the stack.
type Output struct{ Value any }

// Read reads a template file.
func Read(file string) (Template, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return Template{}, fmt.Errorf("cannot read the template: %w", err)
	}
	return Parse(string(text))
}

// Parse parses a JSON template.
func Parse(text string) (Template, error) {
	t := Template{Text: text}
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return Template{}, fmt.Errorf("cannot read the template: %w", err)
	}
	for id, r := range t.Resources {
		r.ID = id
	}
	return t, nil
}

// Of lists the resources of a type, such as "Lambda::Function", sorted by id.
func (t Template) Of(kind string) []*Resource {
	var all []*Resource
	for _, id := range slices.Sorted(maps.Keys(t.Resources)) {
		if r := t.Resources[id]; r.Type == "AWS::"+kind {
			all = append(all, r)
		}
	}
	return all
}

// Function returns the function with the short name, or nil.
func (t Template) Function(name string) *Resource {
	for _, f := range t.Of("Lambda::Function") {
		if strings.HasSuffix(f.Text("FunctionName"), "-"+name) {
			return f
		}
	}
	return nil
}

// At returns the property at a path of keys, or nil.
func (r *Resource) At(path ...string) any {
	var value any = r.Properties
	for _, key := range path {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[key]
	}
	return value
}

// Text returns the property at a path, formatted by Flat.
func (r *Resource) Text(path ...string) string { return Flat(r.At(path...)) }

// Variables returns the environment of a function.
func (r *Resource) Variables() map[string]string {
	given, _ := r.At("Environment", "Variables").(map[string]any)
	variables := map[string]string{}
	for name, value := range given {
		variables[name] = Flat(value)
	}
	return variables
}

var reference = regexp.MustCompile(`\$\{(\w+)(\.\w+)?\}`)

// Environment returns a function's environment as NAME=value, with invented values for
// references, and with the variables that Lambda adds.
func (r *Resource) Environment() []string {
	known := map[string]string{"Partition": "aws", "Region": "eu-west-1", "AccountId": "111122223333", "URLSuffix": "amazonaws.com"}
	environment := []string{
		"AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=key", "AWS_SECRET_ACCESS_KEY=secret", "AWS_LAMBDA_FUNCTION_VERSION=$LATEST",
	}
	for name, value := range r.Variables() {
		environment = append(environment, name+"="+reference.ReplaceAllStringFunc(value, func(found string) string {
			id := reference.FindStringSubmatch(found)[1]
			if text, ok := known[id]; ok {
				return text
			}
			return strings.ToLower(id)
		}))
	}
	return environment
}

// Flat formats a value of the template: a text unchanged, a reference as
// "${Table.Arn}", nil as "", and anything else as JSON.
func Flat(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case map[string]any:
		if text, ok := referred(v); ok {
			return text
		}
	}
	text, err := json.Marshal(value)
	if err != nil { // it was read from JSON
		return err.Error()
	}
	return string(text)
}

func referred(v map[string]any) (string, bool) {
	if ref, ok := v["Ref"].(string); ok {
		return "${" + strings.TrimPrefix(ref, "AWS::") + "}", true
	}
	if parts, ok := v["Fn::GetAtt"].([]any); ok && len(parts) == 2 {
		return fmt.Sprintf("${%v.%v}", parts[0], parts[1]), true
	}
	joined, ok := v["Fn::Join"].([]any)
	if !ok || len(joined) != 2 {
		return "", false
	}
	var text []string
	parts, _ := joined[1].([]any)
	for _, part := range parts {
		text = append(text, Flat(part))
	}
	return strings.Join(text, Flat(joined[0])), true
}
