//go:build localstack

package dynamo_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sortie-dev/sortie/local/proof/port/awstest"
)

// database returns the DynamoDB of the tests: DynamoDB Local.
func database(t testing.TB) aws.Config {
	t.Helper()
	return awstest.DynamoDB(t)
}
