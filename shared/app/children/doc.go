// Package children starts, counts and cancels the children of runs that fan out; see package fan
// for the decisions. It has no state but caches: all is in the records of the parent and of its
// children, so any process may do the next step, and each step may be repeated.
//
//	Begin      step ContainerCreating of the parent: reads and stores the items, starts the first
//	Ended      effect of the end of a child: counts it, starts the next
//	Reconcile  effect of a cancelled parent, and check of the sweep: looks at all active children
//	Results    step Terminating of the parent: the results, in order
//
// Ends that meet in one process are counted by one call. A commit that loses to another process
// counts on the newer record.
package children
