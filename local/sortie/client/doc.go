// Package client calls Sortie's HTTP API.
//
// It promises that a failure is either *Unreachable (no answer came) or
// *Problem (the server's own words), and that neither names a token or a
// presigned URL. With Patient, calls that are safe to repeat bear an outage of
// the server, such as its restart, for as long as was asked. A call that makes
// something is repeated only under an idempotency key.
//
// It refuses to send its token anywhere but to the server it was made for: a
// redirect to an object store is followed without it.
package client
