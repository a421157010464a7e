// Package engine runs executions of a state machine durably, behind the port
// orchestrator.Executions: Step Functions for one process.
//
//	stimulus ──► asl steps the execution ──► one commit ──► effects
//	(start, result, token, time)              (a row)        (invocations, answers)
//
// It promises:
//
//   - What is answered is on the disk. Every step to the next blocking point is
//     committed before its invocations are made and before the call that caused
//     it returns.
//   - After kill -9 at any moment each execution goes on where it was, with its
//     timers and tokens. Invocations that were in flight are made again, with the
//     same payload and token: handlers see them at least once.
//   - A heartbeat puts its deadline off and is not stored: after a restart every
//     heartbeat clock starts anew, so none runs out sooner than was answered.
//   - A token belongs to one try of one entry into a state, and the first who
//     completes it wins. A result that comes before the invocation has returned is
//     kept until then.
//   - An execution keeps the definition that it was started with.
//   - An execution that waits costs a small entry in memory and its place in one
//     heap of deadlines: no goroutine and no polling. Its document is read from
//     the store when something happens to it.
//
// Run drives it with goroutines and the clock. Step drives it synchronously, for
// a simulation that owns the clock. Without a database it keeps everything in
// memory.
//
// It refuses resources other than lambda:invoke, lambda:invoke.waitForTaskToken
// and the ARN of a function, and everything that package asl refuses.
package engine
