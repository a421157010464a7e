//go:build !localstack

package dynamo_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// database returns the DynamoDB of the tests: the fake. With the build tag
// localstack it is DynamoDB Local.
func database(testing.TB) aws.Config {
	return awsfake.NewDynamoDB(awsfake.DynamoDBConfig{Clock: clock.System{}}).AWS()
}
