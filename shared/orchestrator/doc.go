// Package orchestrator has the use cases of Sortie, one per handler, and owns
// the ports they stand on.
//
// Each use case does the same four things: load the run, let package run
// decide, commit what was decided, act. It promises that whatever it answers
// with a 2xx is committed, that losing a race is a normal answer, and that
// every act is repeated until it is recorded as done, by the handler, the
// relay or the sweep.
//
// It refuses to know HTTP, an SDK, or the wall clock: see httpkit, the adapters
// and Clock.
package orchestrator
