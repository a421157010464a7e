// Package awstest stands in for AWS where adapters to it are tested: Serve
// answers a few calls in process, as the test says, and LocalStack finds the
// emulator that the tests with the build tag "localstack" run on.
//
// Both give the aws.Config that the adapter under test is made with, so that
// the whole SDK is part of the test. The package knows no service.
package awstest
