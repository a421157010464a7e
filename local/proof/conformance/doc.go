// Package conformance checks whether a worker, in any language, conforms to the
// worker contract. It plays the control plane and the bucket on loopback, runs the
// worker's command once for each scenario in the environment that a machine of the
// local system has, and compares what the worker sends and does with the
// requirements of the contract.
//
// A Report has a Verdict for each requirement that a scenario could check: pass,
// fail, unproven (the worker ended too soon for the check), or a note on what the
// contract leaves open. A verdict of fail or unproven means that the worker does
// not conform. A defect that shows in several scenarios is reported once.
//
// A worker that calls only CALLBACK_URL is checked against the export contract
// (EC-9.3), which the kit recognizes by the worker's first call.
//
// The times of the envelope are short, so that a scenario takes seconds; the
// command should work for at least ten heartbeat intervals. The limits allow for a
// busy host: what is checked is the order and the content of the calls, and that
// they are made at all.
package conformance
