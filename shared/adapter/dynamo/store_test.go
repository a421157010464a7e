package dynamo_test

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/local/proof/port/storetest"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
)

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) port.Store { return open(t, dynamo.Config{}) })
}

// open returns a store on a new table.
func open(t testing.TB, c dynamo.Config) *dynamo.Store {
	t.Helper()
	cfg := database(t)
	c.Table, c.Clock = table(t, cfg), clock.System{}
	s, err := dynamo.Open(cfg, c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// table creates a table.
func table(t testing.TB, cfg aws.Config) string {
	t.Helper()
	name := "sortie-" + rand.Text()
	if err := awsfake.CreateTable(t.Context(), cfg, name); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestEventKeyStore(t *testing.T) {
	t.Parallel()
	porttest.EventKeyStore(t, func(t *testing.T) port.EventKeyStore { return open(t, dynamo.Config{}) })
}

func TestOutbox(t *testing.T) {
	t.Parallel()
	porttest.Outbox(t, func(t *testing.T) (port.Outbox, func()) { return open(t, dynamo.Config{}), nil })
}

func TestOutboxWithLaggingReads(t *testing.T) {
	t.Parallel()
	porttest.Outbox(t, func(t *testing.T) (port.Outbox, func()) {
		s, db := openFake(t, awsfake.DynamoDBConfig{Seed: 1, Lag: time.Hour, Stale: 1, Plan: awsfake.Seeded(1, 1, awsfake.Partial)})
		return s, db.Settle
	})
}
