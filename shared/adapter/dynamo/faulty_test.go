package dynamo_test

import (
	"hash/crc32"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/local/proof/port/storetest"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
)

// openFake returns a store on a fake.
func openFake(t *testing.T, c awsfake.DynamoDBConfig) (*dynamo.Store, *awsfake.DynamoDB) {
	t.Helper()
	c.Clock = clock.System{}
	db := awsfake.NewDynamoDB(c)
	s, err := dynamo.Open(db.AWS(), dynamo.Config{Table: table(t, db.AWS()), Clock: c.Clock, PlainItems: true})
	if err != nil {
		t.Fatal(err)
	}
	return s, db
}

// TestStoreWithLaggingReads runs the suite with eventually consistent reads that lag by an
// hour, unless the suite waits for them. All pages and batches are returned in part.
func TestStoreWithLaggingReads(t *testing.T) {
	t.Parallel()
	storetest.RunLagging(t, func(t *testing.T) (port.Store, func()) {
		s, db := openFake(t, awsfake.DynamoDBConfig{Seed: 1, Lag: time.Hour, Stale: 1, Plan: awsfake.Seeded(1, 1, awsfake.Partial)})
		return s, db.Settle
	})
}

// TestStoreByDirectCalls: the suite on the client that simulations use.
func TestStoreByDirectCalls(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) port.Store {
		db := awsfake.NewDynamoDB(awsfake.DynamoDBConfig{Clock: clock.System{}})
		s, err := dynamo.New(db.Direct(), dynamo.Config{Table: table(t, db.AWS()), Clock: clock.System{}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

// TestStoreWithFaults: the store hides conflicts, throttling, lost answers and
// partial answers.
func TestStoreWithFaults(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) port.Store {
		seed := uint64(crc32.ChecksumIEEE([]byte(t.Name())))
		s, _ := openFake(t, awsfake.DynamoDBConfig{Seed: seed, Plan: awsfake.Seeded(seed, 0.1,
			awsfake.Lost, awsfake.Unsure, awsfake.Throttled, awsfake.Conflicted, awsfake.Partial)})
		return s
	})
}
