// Package roles proves the roles of the deployed functions by running them.
//
//	suite ──HTTP──► API ──events──► Lambda: the built functions, each with its variables
//	                                   │     of the template
//	     machines, buckets ◄───────────┤
//	                                   └─AWS──► IAM ──► fakes of AWS
//
// A Home is a deployed stage on this host: Lambda's Runtime API, an API Gateway, the
// interpreter of state machines and the fakes of awsfake, each no more than the functions
// use. The programs are those that are deployed, and start with the variables that the
// template gives them (package deployment). A function signs its calls of AWS with its own
// name, by which awsfake.IAM finds the role that the template gives it: a call outside it is
// refused, as AWS would, and remembered.
//
// The test plays the suite that every deployment passes, and then compares: no call was
// refused, and each permission was used or has a reason in the table of reasons_test.go.
//
// # A new permission
//
// A function that calls something new of AWS fails the test with its name, the action and
// the resource. Add the use to its row in infra/stack/functions.go (the permissions of a use
// are in infra/stack/uses.go), then run "go test ./stack -run Fresh -rewrite" in infra, which
// writes the template's roles to deployment/deployment.json and the summary. A permission
// that no test of the suite uses fails too: add a test to the suite, which runs on all homes,
// or remove the permission. Only what Lambda itself does with a role, and what needs a crash
// or a service that the home does not have, gets a reason.
package roles
