// Package deployment has the parts of the deployed stack that the tests of roles need: the
// variables and the role of each function, and the routes of the API.
//
// deployment.json is generated from the synthesised template. A test of infra compares the two,
// so the tests of roles need neither Node nor the CDK. Regenerate the file with "go test
// ./stack -run Fresh -rewrite" in infra.
package deployment

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/local/sortie/template"
)

// Deployment is a deployed stage. Its ARNs use the account and region of awsfake.
type Deployment struct {
	// Functions maps short names to functions.
	Functions map[string]Function `json:"functions"`
	// Routes maps each method and path of the API to its function. The method ANY covers the
	// methods of a path without their own entry.
	Routes map[string]string `json:"routes"`
}

// Function is a deployed function.
type Function struct {
	// Timeout is in seconds.
	Timeout     int               `json:"timeout"`
	Environment map[string]string `json:"environment"`
	Role        awsfake.Role      `json:"role"`
}

//go:embed deployment.json
var text []byte

// Read returns the deployment in deployment.json.
func Read() (Deployment, error) {
	var d Deployment
	if err := json.Unmarshal(text, &d); err != nil {
		return d, fmt.Errorf("cannot read the deployment: %w", err)
	}
	return d, nil
}

// Of returns the deployment of a template. It returns an error for a role that has anything but
// inline statements of actions, resources and conditions.
func Of(t template.Template) (Deployment, error) {
	d := Deployment{Functions: map[string]Function{}, Routes: map[string]string{}}
	names, r := map[string]string{}, resolver{t: t}
	for _, f := range t.Of("Lambda::Function") {
		parts := strings.SplitN(f.Text("FunctionName"), "-", 3) // sortie-STAGE-NAME
		name := parts[len(parts)-1]
		names[f.ID] = name
		timeout, err := strconv.Atoi(f.Text("Timeout"))
		if err != nil {
			return d, fmt.Errorf("%s: malformed timeout: %w", name, err)
		}
		env := map[string]string{}
		for variable, value := range f.Variables() {
			env[variable] = r.resolve(value)
		}
		role, err := r.role(f)
		if err != nil {
			return d, fmt.Errorf("%s: %w", name, err)
		}
		d.Functions[name] = Function{Timeout: timeout, Environment: env, Role: role}
	}
	for _, m := range t.Of("ApiGateway::Method") {
		for id, name := range names {
			if strings.Contains(m.Text("Integration", "Uri"), "${"+id+".Arn}") {
				d.Routes[m.Text("HttpMethod")+" "+path(t, m.Text("ResourceId"))] = name
			}
		}
	}
	return d, r.err
}

// path returns the path of the API resource that the reference names.
func path(t template.Template, reference string) string {
	r := t.Resources[strings.Trim(reference, "${}")]
	if r == nil {
		return ""
	}
	return path(t, r.Text("ParentId")) + "/" + r.Text("PathPart")
}
