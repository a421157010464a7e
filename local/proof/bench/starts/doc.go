// Package starts measures how long runs wait for their machines: from the accepted request
// to the call started of the worker.
//
// The use cases, the state machine on the local engine, SQLite, the adapter of Fly Machines
// with fly-go, and the local machines API run in one bubble of testing/synctest, whose clock
// advances only while every goroutine waits. So all times are virtual and exact. They include
// the delays and rate limits of the machines API, and the delays in store.go for calls of the
// store and for steps, but no CPU or network time. The measurement "runs" measures the time
// that Sortie itself needs.
//
// The API answers a creation after 1.1 to 2.5 s. A program starts 0.3 s after that answer or
// after a start request. The rate limits are Fly's: one creation a second per app, with a burst
// of three; one start, stop, wait and destruction a second per machine. Sortie has the settings
// of a deployment: its own pace per app, and a sweep each minute.
package starts
