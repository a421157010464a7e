package dynamo_test

import (
	"hash/crc32"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/port"
)

func TestWebhooks(t *testing.T) {
	t.Parallel()
	porttest.Webhooks(t, func(t *testing.T) (port.WebhookStore, func()) { return open(t, dynamo.Config{}), nil })
}

func TestWebhooksWithLaggingReads(t *testing.T) {
	t.Parallel()
	porttest.Webhooks(t, func(t *testing.T) (port.WebhookStore, func()) { return openLagging(t) })
}

func TestWebhooksWithFaults(t *testing.T) {
	t.Parallel()
	porttest.Webhooks(t, func(t *testing.T) (port.WebhookStore, func()) { return openFaulty(t), nil })
}

// openLagging opens a store whose indexes show a commit an hour later, and returns a function
// that updates them at once.
func openLagging(t *testing.T) (*dynamo.Store, func()) {
	t.Helper()
	s, db := openFake(t, awsfake.DynamoDBConfig{Seed: 1, Lag: time.Hour, Stale: 1, Plan: awsfake.Seeded(1, 1, awsfake.Partial)})
	return s, db.Settle
}

// openFaulty opens a store that has a fault in a tenth of its calls.
func openFaulty(t *testing.T) *dynamo.Store {
	t.Helper()
	seed := uint64(crc32.ChecksumIEEE([]byte(t.Name())))
	s, _ := openFake(t, awsfake.DynamoDBConfig{Seed: seed, Plan: awsfake.Seeded(seed, 0.1,
		awsfake.Lost, awsfake.Unsure, awsfake.Throttled, awsfake.Conflicted, awsfake.Partial)})
	return s
}
