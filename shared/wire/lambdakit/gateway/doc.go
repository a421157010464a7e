// Package gateway converts events of an API Gateway REST API (proxy integration, payload 1.0)
// to HTTP requests, and the responses of handlers to events.
//
// A handler gets all of the client's request that the event contains: each header and query
// value, the bytes of the body, and the path without the stage. Its context ends Margin before
// Lambda's deadline, which leaves time for a response. The response is a problem document if
// the handler panics, exceeds AnswerLimit or aborts before its first byte. A handler that
// aborts later breaks the stream, so no client takes a part of the response for all of it.
//
// Events of other sources are errors. The package logs no part of an event.
//
// API Gateway renames the response header WWW-Authenticate to x-amzn-Remapped-WWW-Authenticate.
// No setting of the API changes that.
package gateway
