//go:build unix

package wrap

import (
	"fmt"
	"io"
	"strings"
)

// EnvironmentFlag makes Main read the environment of CMD from its standard input:
// "NAME=value" with a NUL after each. So this program has an environment of its own, which
// no job sets.
const EnvironmentFlag = "--environment"

// readEnvironment reads the variables of EnvironmentFlag.
func readEnvironment(from io.Reader) ([]string, error) {
	text, err := io.ReadAll(from)
	if err != nil {
		return nil, fmt.Errorf("cannot read the environment of CMD: %w", err)
	}
	var variables []string
	for v := range strings.SplitSeq(strings.TrimSuffix(string(text), "\x00"), "\x00") {
		if !strings.Contains(v, "=") {
			return nil, fmt.Errorf("%s: malformed environment of CMD, want NAME=value with a NUL after each", EnvironmentFlag)
		}
		variables = append(variables, v)
	}
	return variables, nil
}
