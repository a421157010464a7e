// Package answer reads and writes the streams of inference tasks.
//
// A dispatcher writes the answer of an engine to the stream of its task, with a Writer; clients
// follow the stream with Streams.Follow. A stream has exactly one last record. A process that
// finds no dispatcher ends the stream by Streams.Conclude. The stream decides the outcome of the
// task: StreamEnd converts its last record to the end of the run.
package answer
