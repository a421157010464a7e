//go:build unix

package operate

import (
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// engineAddresses parses the values of --engine.
func engineAddresses(texts []string) ([]stack.EngineAddress, error) {
	var found []stack.EngineAddress
	for _, text := range texts {
		kind, address, hasAddress := strings.Cut(text, "=")
		a := stack.EngineAddress{Kind: platform.EngineKind(kind), URL: address}
		mock := a.Kind == platform.EngineMock
		if a.Kind != platform.EngineMock && !slices.Contains(platform.EnginesWithoutKey(), a.Kind) || mock == hasAddress {
			return nil, cli.Wrong("--engine: malformed value %q, want mock, or %s with an address, such as llamacpp=http://127.0.0.1:8081", text, platform.EngineNames(platform.EnginesWithoutKey()))
		}
		if slices.Contains(found, a) {
			return nil, cli.Wrong("--engine: %q is repeated", text)
		}
		found = append(found, a)
	}
	return found, nil
}
