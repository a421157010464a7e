// Package fan decides about fan-outs: a run with up to 10,000 children, one for each item of a
// list or of a matrix. It is pure.
//
// The parent is a run without a machine. Its record has Progress: which items have started, how
// the children ended, and which are active. A child that waits is only a number in that record. It
// gets a run, with an id that follows from the parent and its index, when it is its turn.
//
//	commit of the parent: Started = n+1 ──▶ create run PARENT.n ──▶ … ──▶ the child ends
//	        ▲                                                                │
//	        └──── commit of the parent: the end of n, further starts ◀───────┘
//
// After a crash at any of these points the next check of the parent continues: it creates the
// active children that have no run, and counts those that have ended. Both may be repeated. A run
// with the id of a child exists once, and an end counts only for an active child. Verified is the
// number of children whose runs were seen. A run of these that is gone is not created again.
//
// The items are stored apart from the records, under the digest of their content; see List.
package fan
