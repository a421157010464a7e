// Package explain explains why a run or a job is in its state: which limits apply, which runs
// hold their slots, what it waits for, which single change would start it, and when it is
// expected to start.
//
// The package is pure: the records and the time are arguments. An explanation describes the
// records at that time and guarantees nothing: a run that joins a queue with a higher priority
// changes the position of others, and an expected start is an estimate from measured runs.
package explain
