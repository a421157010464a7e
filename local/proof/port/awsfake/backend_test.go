//go:build !localstack

package awsfake_test

import (
	"testing"

	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// database returns a client, with a table, of the DynamoDB that the tests describe. By default
// it is the fake, called through both of its clients. With the build tag localstack it is
// DynamoDB Local. All must pass the same tests.
func database(t *testing.T, table string) dynamo.API {
	t.Helper()
	return both(t, awsfake.DynamoDBConfig{Clock: clock.System{}}, table)
}
