// Package stacktest runs local stacks in processes of their own, which tests
// can kill.
//
// A test binary whose TestMain calls Main is every program that a stack needs:
// the stack itself, the supervisor of a machine, the export worker, and workers
// that do what a test says (Config.Play, or a program of the test's own). So
// such tests run real processes and need nothing to be built or installed.
//
// Only loopback and the test's folder are used. It is for tests alone, and
// decides nothing about their outcome.
package stacktest
