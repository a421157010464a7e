package job

import (
	"maps"
	"strings"

	"github.com/sortie-dev/sortie/shared/base/limit"
)

const (
	// maxArgument is the maximum size of an argument, or of a variable with its name, in bytes
	// (Linux: MAX_ARG_STRLEN, including the final NUL). maxArgumentsSize is the maximum size of
	// all of them. The record of a run stores the variables twice, and DynamoDB stores 400 KB.
	maxArgument      = 128<<10 - 1
	maxArgumentsSize = 160 << 10
)

// CheckParameters returns the problems of parameters for a run of the definition.
func (d Definition) CheckParameters(parameters map[string]string) []Problem {
	const field = "parameters"
	p := &problems{}
	if d.Export != nil && len(parameters) > 0 {
		p.addConflict(field, "no meaning for a job that exports; leave them out")
		return p.sorted()
	}
	given, all := make(map[string]Variable, len(parameters)), maps.Clone(d.Env)
	if all == nil {
		all = map[string]Variable{}
	}
	for name, value := range parameters {
		given[name] = Variable{Value: value}
		all[name] = given[name]
	}
	validateEnv(field, given, p)
	validateSize(field, d.Command, all, p)
	return p.sorted()
}

// validateEnv checks environment variables. field is the path of the object that contains them.
func validateEnv(field string, env map[string]Variable, p *problems) {
	if len(env) > maxVariables {
		p.bad(field, "%d variables, want at most %d", len(env), maxVariables)
	}
	for name, v := range env {
		at := join(field, limit.Cut(name, nameLimit))
		length := len(name) + len("=") + len(v.Value)
		switch {
		case length > maxArgument:
			p.bad(at, "%d bytes with its name, want at most %d, which is the limit of Linux; pass a file or an input", length, maxArgument)
		case !variableName.MatchString(name):
			p.bad(at, "malformed name of a variable, want letters, digits and _, the first no digit")
		case limit.ReservedVariable(name):
			p.bad(at, "reserved name of a variable, want another than those of Sortie and of the platform")
		case limit.LoaderVariable(name):
			p.addConflict(at, "name of a variable of the loader or of Go's runtime (LD_*, DYLD_*, GODEBUG, GOTRACEBACK), want another; a program can set it for itself")
		case strings.Contains(v.Value, "\x00"):
			p.bad(at, "value with a NUL, want text")
		}
		validateSecret(join(at, "secretRef"), v.SecretRef, p)
	}
}

// validateSize checks the total size of the arguments and variables of a program.
func validateSize(field string, command []string, env map[string]Variable, p *problems) {
	size := 0
	for _, argument := range command {
		size += len(argument) + 1
	}
	for name, v := range env {
		size += len(name) + len("=") + len(v.Value) + 1
	}
	if size > maxArgumentsSize {
		p.bad(field, "%d bytes of arguments and variables together, want at most %d", size, maxArgumentsSize)
	}
}
