// Package asl interprets the Amazon States Language, JSONPath dialect. It
// parses and validates definitions and steps their executions.
//
//	machine, err := asl.Parse(text)                    reports every mistake with its place
//	execution, invocations := machine.Start(env, input)
//	more := execution.Returned(env, attempt, output)   or Failed, Succeed, Tick, ...
//
// The package makes no calls; time and randomness come from Env. Each stimulus
// runs the execution until all of its branches wait for an invocation, a token
// or a time, and returns the invocations to make. Deadline returns the time of
// the next Tick. Between stimuli, Append and Machine.Decode store and load an
// execution, so that a caller that stores it before it makes the invocations
// can resume after a crash.
//
// It behaves as Step Functions does, as documented and as recorded, for all
// eight state types, the data flow, the 18 intrinsic functions, the context
// object, Retry, Catch, timeouts, heartbeats and the limits on data (256 KiB),
// names (80 characters), definitions (1 MiB) and history (25,000 events).
//
// It refuses JSONata, variables (Assign) and the distributed Map with an
// *UnsupportedError. Any other unknown field is an error.
package asl
