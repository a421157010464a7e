// Package httpkit is what all front doors have in common, and the only place
// that knows HTTP's status codes for failures.
//
//	request -> correlation id -> host and origin -> route -> caller -> query -> handler
//	                                                                              |
//	answer  <-  one access log line  <-  problem+json of whatever went wrong  <---+
//
// A front door is a list of Route; New makes one http.Handler of all of them.
// A handler writes its answer, or returns the error that is to be told instead:
// a fault becomes the problem that its code stands for, and anything else a
// 500 that says nothing about it but where to find it in the logs.
//
// It promises that every answer has a correlation id; that no answer has the
// words of a library, and no log line a token, a header or a query; and that a
// body is read strictly, within 1 MiB, before anything is done about it.
//
// It refuses requests that a web page of somebody else makes to a server on
// loopback, where no token is needed.
package httpkit
