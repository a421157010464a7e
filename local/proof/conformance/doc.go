// Package conformance tells the author of a worker, in any language, what is
// wrong with it. It plays the control plane and the bucket on loopback, starts
// the worker's command once for each scenario with a TASK_ENVELOPE, and holds
// what the worker sends and does against the worker contract, sentence by
// sentence.
//
// A Report has a verdict for each sentence that a scenario could judge: kept,
// broken, unproven (the worker gave no occasion: it ended too soon), or a note
// on what the contract leaves open. Broken and unproven ones are failures.
//
// The times of the envelope are short, so that a scenario takes seconds: the
// command should work for at least ten heartbeat intervals. What a busy host
// may delay is judged generously; what is judged is order, content, and that
// things happen in time at all.
package conformance
