package dynamo_test

import (
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

func TestWriters(t *testing.T) {
	t.Parallel()
	porttest.Writers(t, func(t *testing.T) porttest.WritersHarness {
		cfg, now := database(t), clock.NewVirtual(time.Now())
		name := table(t, cfg)
		open := func() *dynamo.Store {
			s, err := dynamo.Open(cfg, dynamo.Config{Table: name, Clock: now})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		return porttest.WritersHarness{Writers: open(), Other: open(), Now: now.Now, Advance: now.Advance}
	})
}
