// Package statemachines holds the state machines of Sortie as they are
// deployed, in Amazon States Language.
//
// Step Functions and the local engine use the same file; only the names of the functions
// are substituted. README.md describes the life of a run.
package statemachines

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

//go:embed run.asl.json
var run string

var placeholder = regexp.MustCompile(`\$\{([A-Za-z]+)\}`)

// Functions lists the functions that the state machine of a run calls, sorted. Each
// has the name of a step function with a capital: "Admit" is admit of functions/steps.
func Functions() []string {
	var names []string
	for _, match := range placeholder.FindAllStringSubmatch(run, -1) {
		names = append(names, match[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// resource begins the ARN of a service integration, with the partition of the file.
const resource = `"Resource": "arn:aws:`

// RunIn is Run for another partition of AWS, such as aws-us-gov.
func RunIn(partition string, substitutions map[string]string) (string, error) {
	definition, err := Run(substitutions)
	return strings.ReplaceAll(definition, resource, strings.Replace(resource, "aws", partition, 1)), err
}

// Run returns the state machine of a run with a name or ARN for each function, in the
// partition aws. It fails if substitutions lacks one.
func Run(substitutions map[string]string) (string, error) {
	for _, name := range Functions() {
		if substitutions[name] == "" {
			return "", fmt.Errorf("missing substitution for ${%s}", name)
		}
	}
	return placeholder.ReplaceAllStringFunc(run, func(found string) string {
		return substitutions[placeholder.FindStringSubmatch(found)[1]]
	}), nil
}
