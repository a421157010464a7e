// Package engine runs executions of a state machine durably. It implements
// port.Executions: Step Functions for one process.
//
//	stimulus ──► asl steps the execution ──► one commit ──► effects
//	(start, result, token, time)              (a row)        (invocations, answers)
//
// Guarantees:
//
//   - An answered call is durable. Every step to the next blocking point is
//     committed before its invocations are made and before the call that caused
//     it returns.
//   - The result of an invocation is committed with the commit of the next invocation, with the
//     next change of the execution, or after two seconds. If it leads to a token state, the
//     token is committed with the record that names it.
//   - After kill -9 at any moment each execution resumes with its timers and
//     tokens. Invocations that were in flight, or whose result was not committed, are
//     repeated with the same payload and token: handlers are called at least once.
//   - Calls passed to Join are durable with the store commit that they join.
//   - A heartbeat extends its deadline and is not stored. After a restart every
//     heartbeat clock starts again, so a deadline is never earlier than answered.
//   - A token belongs to one try of one entry into a state; its first completion
//     wins. A result that arrives before the invocation has returned is stored
//     until then.
//   - An execution keeps the definition with which it was started.
//   - A waiting execution costs a small entry in memory and one element of a heap
//     of deadlines: no goroutine and no polling. Its document is read from the
//     store when an event for it arrives.
//
// Run drives the engine with goroutines and the clock. Step drives it
// synchronously, for a simulation that owns the clock. Without a database the
// engine keeps everything in memory.
//
// Supported resources are lambda:invoke, lambda:invoke.waitForTaskToken and the
// ARN of a function; package asl documents what it supports.
package engine
