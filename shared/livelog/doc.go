// Package livelog is the format of the output that workers send while they run. It
// does no input or output.
//
// A worker numbers the chunks of an attempt without gaps, from 0 or 1, over both streams.
// They are stored in two kinds of objects. The head has the newest chunks and a list of
// the segments; each accepted chunk replaces it, on condition that it is unchanged. A
// segment has older chunks and never changes. If the output exceeds the limit, the oldest
// segments beyond the first half of the limit are dropped, so the beginning and the end of
// the output are kept.
//
//	head:     {"next":9,"segments":[{"first":1,"last":4,…}],…}
//	          stdout 5 12
//	          Hello world
//	          stderr 6 8
//	          …
//
// The stored log of an ended attempt has the same encoding: frames with masked secrets,
// and a cut where output is missing.
package livelog
