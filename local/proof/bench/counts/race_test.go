//go:build race

package counts_test

// raced reports whether the test runs with the race detector.
const raced = true
