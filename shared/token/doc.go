// Package token signs and verifies the tokens that authorize workers: ES256 JWTs
// whose claims name one attempt.
//
// A token is valid for one audience, for a limited time and under a key that is
// still published. Mint takes the signing function as an argument, so private
// keys stay where they are kept. A Verifier remembers tokens whose signature it
// has verified, because a worker shows the same token with every heartbeat; the
// key, the times and the audience are checked on every call.
//
// The package reads no clock and no key store of its own and knows nothing of
// runs: the caller compares the claims with the record.
package token
