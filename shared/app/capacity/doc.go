// Package capacity reads what the use cases know about pools: their records and sizes, their
// replicas, the length of their queues, the expected starts, and the failures of their platforms.
//
// Everything is in the store. Each type caches what it has read for a short time, so that its
// cost does not grow with the number of calls. The types are safe for concurrent use.
package capacity
