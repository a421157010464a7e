// Package gateway makes HTTP of the events of an API Gateway REST API (proxy
// integration, payload 1.0), and events of what handlers answer.
//
// It promises a handler the request that the client sent, as far as API Gateway
// tells it: every header and query value, the body's bytes, the path without
// the stage. A context ends a little before Lambda's deadline, so that there is
// time for an answer. A panic, an answer that is too large for Lambda and a
// handler that breaks off before its first byte become a problem; one that
// breaks off later breaks the stream, so that no client takes a part for the
// whole.
//
// It refuses events of other sources, and logs nothing of what an event has in
// it.
package gateway
