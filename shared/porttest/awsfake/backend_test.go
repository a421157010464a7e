//go:build !localstack

package awsfake_test

import (
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/porttest/awsfake"
)

// database returns a client with a table of the DynamoDB whose behavior the tests describe:
// the fake, by both of its clients. With the build tag localstack it is DynamoDB Local, so
// that both pass the same tests.
func database(t *testing.T, table string) dynamo.API {
	t.Helper()
	return both(t, awsfake.DynamoDBConfig{Clock: clock.System{}}, table)
}
