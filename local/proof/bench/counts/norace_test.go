//go:build !race

package counts_test

// raced: the test runs with the race detector.
const raced = false
