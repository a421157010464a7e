// Package httpkit has the code that all HTTP functions share. It is the only place that maps
// failures to HTTP status codes.
//
//	request  -> correlation id -> host and origin -> route -> caller -> query -> handler
//	                                                                               |
//	response <-  one access log line  <-  problem+json of an error  <--------------+
//
// An HTTP function is a list of Routes; New returns one http.Handler for all of them. A handler
// writes its response or returns an error. A fault becomes the problem for its code; any other
// error becomes a 500 without details.
//
// Every response has a correlation id. No response contains the error text of a library, and no
// log line contains a token, a header or a query. A body is decoded strictly and completely
// before the handler acts.
//
// A client token authorizes the scopes, the tenant and the project of its record. A server on
// loopback without tokens accepts programs on its own host without a token, but not web pages
// of other sites, and not requests through a proxy.
package httpkit
