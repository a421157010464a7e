// Package awstest replaces AWS in the tests of its adapters: Serve answers
// calls in process, and LocalStack configures the emulator for tests with the
// build tag "localstack".
//
// Both return the aws.Config of the adapter under test, so that the tests
// include the whole SDK. The package depends on no service of AWS.
package awstest
