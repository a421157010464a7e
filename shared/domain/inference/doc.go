// Package inference has the pure parts of inference tasks: their requests, and the streams of
// their answers.
//
// An answer is a stream of records in the Feed, one stream for each task. Only the dispatcher
// of the current attempt appends tokens, each batch after the position of the previous one. The
// last record is [End] or [Failure]. A dispatcher, a cancel request or a sweep appends it. The
// first one ends the stream: later appends of writers that have not read it fail. So positions
// alone decide what a reader gets.
package inference
