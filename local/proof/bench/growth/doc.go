// Package growth measures how the cost of each operation grows with the number of queued runs,
// jobs, ended runs and tenants.
//
//	axis ──► fill to n ──► operation × few ──► counters per operation ──┐
//	          (again for each size)                                     ├──► slope of each counter
//	                                                                    ┘
//
// The counters are those of SQLite (instructions, pages, scanned rows), of the store and of Go's
// allocator. They are almost the same on any machine and under any load, which times are not. The
// slope is the exponent b of the fit n^b: 0 does not grow, 1 is proportional. An operation that a
// client calls must not grow. One that handles the whole store, such as a start, may grow like
// n log n.
//
// There are no loops in the background. The caller drives the engine and the relay, on a virtual
// clock.
package growth
