// Package awstest replaces AWS in the tests of its adapters. Serve answers calls in process.
// LocalStack configures the emulator for tests with the build tag "localstack".
//
// Both return the aws.Config for the adapter under test, so that the tests include the whole
// SDK. The package does not depend on any AWS service.
package awstest
