// Package client calls Sortie's HTTP API for the command line. Package shared/sdk/go/client
// creates and sends the requests. This package waits through outages, reports a local server
// that hangs, and returns the types of the server.
//
// A failed call returns *Unreachable (no response arrived) or *Problem (the
// response is an error). Neither contains a token or a presigned URL. A Client
// from WithRetry repeats calls that are safe to repeat until the server is
// reachable again or the given time has passed. A call that creates something
// is repeated only with an idempotency key.
//
// The token is sent only to the configured server. A redirect to an object
// store is followed without it.
package client
