package dynamo_test

import (
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
)

func TestConnections(t *testing.T) {
	t.Parallel()
	porttest.Connections(t, func(t *testing.T) port.Connections {
		cfg := database(t)
		s, err := dynamo.Open(cfg, dynamo.Config{Table: table(t, cfg), Clock: clock.NewVirtual(time.Now())})
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}
