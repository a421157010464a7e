// Package inference has what is pure about inference tasks: their requests, and the stream
// of an answer.
//
// An answer is a stream of records in the Feed, one stream for each task. Only the
// dispatcher of the current attempt appends tokens, each batch behind the position of the
// one before. The last record is [End] or [Failure]. A dispatcher, a cancel request and a
// sweep append it; the first of them ends the stream, and every later append of a writer
// that does not know it fails. So what a reader gets is decided by positions alone.
package inference
