// Package stacktest runs local stacks in separate processes, which tests can
// kill.
//
// A test binary whose TestMain calls Main contains every program of a stack: the
// stack itself, the supervisor of a machine, the export worker, and scripted
// workers (Config.Play, or a program of the test). So tests run real processes
// without building or installing anything.
//
// Stacks use only loopback and the folder of the test.
package stacktest
