// Package starts measures how long runs wait for their machines: from the accepted request
// to the call started of the worker.
//
// The use cases, the state machine on the local engine, SQLite, the adapter of Fly Machines
// with fly-go, and the local machines API run in one bubble of testing/synctest, whose clock
// advances only while every goroutine waits. So all times are virtual and exact: they have
// the delays and the rate limits of the machines API and the delays of store.go for the
// calls of the store and the steps, and no time of the processor or the network. The time
// that Sortie itself needs is measured by the measurement "runs".
//
// The API answers a creation after 1.1 to 2.5 s, and starts a program 0.3 s after the answer
// or after the request of a start. Its buckets are Fly's: one creation a second for each app,
// three at once after a rest; one start, stop, wait and destruction a second for each
// machine. Sortie has the settings of a deployment: its own pace per app, and a sweep each
// minute.
package starts
