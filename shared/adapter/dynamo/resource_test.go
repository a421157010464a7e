package dynamo_test

import (
	"testing"

	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/port"
)

func TestResources(t *testing.T) {
	t.Parallel()
	porttest.Resources(t, func(t *testing.T) (port.ResourceStore, func()) { return open(t, dynamo.Config{}), nil })
}

func TestResourcesWithLaggingReads(t *testing.T) {
	t.Parallel()
	porttest.Resources(t, func(t *testing.T) (port.ResourceStore, func()) { return openLagging(t) })
}

func TestResourcesWithFaults(t *testing.T) {
	t.Parallel()
	porttest.Resources(t, func(t *testing.T) (port.ResourceStore, func()) { return openFaulty(t), nil })
}
