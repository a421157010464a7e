// Package suite is what every Sortie has to do, whoever runs it: tests that
// know a base URL and a machines API, and nothing of what is behind them.
//
//	suite ──HTTP──► Target ──► machines API ──► Stage: the test's own workers
//	  └──────────── looks ─────┴──► object store
//
// Run plays all of it against a Target: the local stack, the stack deployed in
// LocalStack, a real account. What a target cannot do is declared by it with
// the reason, is skipped by name, and stands in a list at the end. The tests run
// side by side on one deployment with one set of settings (Settings): each has
// batches of its own, by which the machines API knows whom to lie to, and the
// workers know what to do (Stage). Those that need the deployment for themselves
// run first, one by one.
//
// A new theme is a file with its tests, and a line in Tests.
package suite
