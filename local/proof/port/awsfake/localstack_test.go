//go:build localstack

package awsfake_test

import (
	"testing"

	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/local/proof/port/awstest"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
)

// database returns a client of DynamoDB Local with a table.
func database(t *testing.T, table string) dynamo.API {
	t.Helper()
	cfg := awstest.DynamoDB(t)
	if err := awsfake.CreateTable(t.Context(), cfg, table); err != nil {
		t.Fatal(err)
	}
	return clientOf(cfg)
}
