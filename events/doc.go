// Package events has the envelope of published events, orch.event.v1, its schema, its
// signatures, and the proof that a stream of events is complete.
//
// An event is published as an [Envelope]. A [Signer] wraps its exact bytes in a DSSE
// envelope. A stream has checkpoints, each the signed root of a Merkle tree over all its
// events; [Verify] checks the events between two of them without a network.
package events
