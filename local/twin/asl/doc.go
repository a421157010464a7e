// Package asl interprets the Amazon States Language, JSONPath dialect: it
// parses and validates definitions and steps executions of them.
//
//	machine, err := asl.Parse(text)                    every mistake with its place
//	execution, invocations := machine.Start(env, input)
//	more := execution.Returned(env, attempt, output)   or Failed, Succeed, Tick, ...
//
// The package is pure: it makes no call, knows no clock and no randomness but
// those of its Env. Each stimulus runs the execution through all states that
// need nothing from outside, until every branch of it waits for an invocation,
// a token or a time; what is to be invoked is returned. Deadline tells when the
// execution wants to hear from the clock next. Between stimuli an execution is
// a value that Append writes and Machine.Decode reads, so that whoever stores
// it before acting on the invocations can go on after a crash.
//
// It promises what Step Functions does, as documented and as recorded, for all
// eight state types, the data flow, the 18 intrinsic functions, the context
// object, Retry, Catch, timeouts, heartbeats and the limits on data (256 KiB),
// names (80 characters), definitions (1 MiB) and history (25,000 events).
//
// It refuses by name, as an *UnsupportedError: JSONata, variables (Assign) and
// the distributed Map. Everything else that it does not know is a mistake.
package asl
