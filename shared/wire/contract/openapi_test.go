package contract_test

import (
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func TestVersionOfTheAPIIsThatOfItsDocument(t *testing.T) {
	t.Parallel()
	var document struct {
		Info struct {
			Version string `yaml:"version"`
		} `yaml:"info"`
	}
	if err := yaml.Unmarshal(contract.OpenAPI(), &document); err != nil || document.Info.Version != contract.APIVersion {
		t.Errorf("got version %q, %v, want %s", document.Info.Version, err, contract.APIVersion)
	}
}
