//go:build !localstack

package awsfake_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/porttest/awsfake"
)

// database returns the DynamoDB whose behavior the tests describe: the fake.
// With the build tag localstack it is DynamoDB Local, so that both pass the same
// tests.
func database(testing.TB) aws.Config {
	return awsfake.NewDynamoDB(awsfake.DynamoDBConfig{Clock: clock.System{}}).AWS()
}
