// Package livelog implements the format of the output that workers send while they run. It
// does no I/O.
//
// A worker numbers the chunks of an attempt without gaps, from 0 or 1, across both streams.
// The chunks are stored in two kinds of objects. The head contains the newest chunks and a
// list of the segments. Each accepted chunk replaces the head by compare-and-set. A segment
// contains older chunks and never changes. If the output exceeds the limit, segments from
// the middle are dropped: the oldest ones after the first half of the limit. The beginning
// and the end of the output remain.
//
//	head:     {"next":9,"segments":[{"first":1,"last":4,…}],…}
//	          stdout 5 12
//	          Hello world
//	          stderr 6 8
//	          …
//
// The stored log of an ended attempt has the same encoding. Its frames have masked secrets,
// and a cut frame replaces output that is missing.
package livelog
