// Package roles proves the roles of the deployed functions by running them.
//
//	suite ──HTTP──► API ──events──► Lambda: the built functions, each with its variables
//	                                   │     of the template
//	     machines, buckets ◄───────────┤
//	                                   └─AWS──► IAM ──► fakes of AWS
//
// A Home is a deployed stage on this host: Lambda's Runtime API, an API Gateway, the
// interpreter of state machines and the fakes of awsfake, each with only the features that the
// functions use. It runs the deployed programs with the variables of the template (package
// deployment). A function signs its AWS calls with its own name, by which awsfake.IAM finds the
// role that the template gives it. A call that the role does not permit is refused, as in AWS,
// and recorded.
//
// The test runs the suite that every deployment passes. Afterwards no call may have been
// refused, and each permission must have been used or have a reason in the table of
// reasons_test.go. "make test" runs a quarter of the suite, with the tests that the permissions
// need; "make test-roles" runs the whole suite.
//
// # A new permission
//
// A function that makes a new kind of AWS call fails the test with its name, the action and the
// resource. Add the use to its row in infra/stack/functions.go (the permissions of a use are in
// infra/stack/uses.go). Then run "go test ./stack -run Fresh -rewrite" in infra, which writes
// the template's roles to deployment/deployment.json and the summary. A permission that no test
// of the suite uses fails, too: add a test to the suite, which runs on all homes, or remove the
// permission. Reasons are only for actions that Lambda itself takes with a role, and for those
// that need a crash or a service that the home does not have.
package roles
