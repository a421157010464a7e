// Package events contains the envelope of published events, orch.event.v1, its schema, its
// signatures, and the proof that a stream of events is complete.
//
// An event is published as an [Envelope]. [Sign] wraps its exact bytes in a DSSE envelope. Each
// checkpoint of a stream is the signed root of a Merkle tree over all its events. [Verify]
// checks the events between two checkpoints without a network.
package events
