// Package suite contains the black-box tests that every Sortie deployment passes. The tests
// know only a base URL and a machines API.
//
//	suite ──HTTP──► Target ──► machines API ──► Scripts: the tests' own workers
//	  │               └──hooks──► receiver, which verifies their signatures
//	  └────────── inspects ────┴──► object store
//
// Run runs all tests against a Target: the local stack, the stack deployed in LocalStack, or an
// AWS account. A target declares each missing capability with a reason. The tests that require
// it are skipped and listed at the end of the log. Tests run in parallel on one deployment with
// one set of settings (Settings). Each test uses its own batch ids, which select the machines
// for injected faults and the scripts for workers. Tests that need the deployment exclusively
// run last, in sequence.
//
// To add a topic, add a file with its tests and a line in Tests.
package suite
