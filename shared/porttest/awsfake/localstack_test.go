//go:build localstack

package awsfake_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sortie-dev/sortie/shared/porttest/awstest"
)

// database returns DynamoDB Local.
func database(t testing.TB) aws.Config {
	t.Helper()
	return awstest.DynamoDB(t)
}
