// Package token signs and verifies tokens: ES256 JWTs that authorize a worker for one
// attempt. It also signs and verifies tickets, which authorize reading event streams.
//
// A token is valid for one audience and a limited time, while its key is published. Mint
// takes a signing function, so private keys can remain in their key store. A Verifier caches
// verified tokens, because a worker sends the same token with every heartbeat. It checks the
// key, the times and the audience on every call.
//
// The clock and the keys are arguments. The package does not read runs: the caller compares
// the claims with the record.
package token
