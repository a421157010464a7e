// Package gateway converts events of an API Gateway REST API (proxy integration,
// payload 1.0) to HTTP requests, and the responses of handlers to events.
//
// A handler gets the client's request as far as the event contains it: every header
// and query value, the bytes of the body, the path without the stage. Its context ends
// Margin before Lambda's deadline, so that there is time for an answer. A panic, an
// answer above AnswerLimit, and a handler that aborts before its first byte become a
// problem document. A handler that aborts later breaks the stream, so that no client
// takes a part for the whole.
//
// Events of other sources are errors. The package logs no part of an event.
//
// API Gateway renames the response header WWW-Authenticate: clients get it as
// x-amzn-Remapped-WWW-Authenticate, and no setting of the API changes that.
package gateway
