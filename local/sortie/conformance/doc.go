// Package conformance checks whether a worker, in any language, conforms to the worker
// contract. It simulates the control plane and the bucket on loopback. It runs the worker's
// command once per scenario, in the environment of a local machine, and compares the worker's
// calls and actions with the requirements of the contract.
//
// A Report has a Verdict for each requirement that a scenario could check: pass, fail, unproven
// (the worker ended too soon for the check), or a note on behaviour that the contract leaves
// open. With a verdict of fail or unproven the worker does not conform. A defect that appears
// in several scenarios is reported once.
//
// A worker that calls only CALLBACK_URL is checked against the export contract (EC-9.3). The
// kit recognizes it by its first call.
//
// The times in the envelope are short, so that a scenario takes seconds. The command should
// work for at least ten heartbeat intervals. The limits allow for a busy host: the checks cover
// the presence, order and content of the calls.
package conformance
