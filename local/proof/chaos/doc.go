// Package chaos kills a running stack and its workers at random moments and
// checks that no accepted run is lost.
//
//	plan ──► injector ──SIGKILL, SIGTERM, SIGSTOP──► stack, supervisors, workers (real processes)
//	                                          ▲ │
//	clients ── POST until accepted, follow, download ──┘
//	                                          │
//	after the last fault: check records, events, bucket, disk, processes
//
// Package simulation injects more kinds of faults under a virtual clock. This
// package uses real processes, a real disk and SIGKILL, also while the stack
// starts.
//
// Workers are also frozen, for less and for more than the heartbeat limit, and
// cloned, and clients cancel. Besides the export worker there is one that only
// calls back, and one in Python that is written from the text of the worker
// contract.
//
// Jobs fire while the faults are injected: each has a schedule, a limit of one run,
// and another action on a second one; one triggers a further job.
//
// Five webhooks get the events of all runs. Their receivers accept, answer 500, cut
// connections, are slow, and hang, until the last fault.
//
// The test fails if an accepted run is lost, does not end, ends twice, ends in
// a state that no fault explains, or has a gap in its events; if a file differs
// from the one produced without faults; if an attempt is counted although its
// worker was not killed; if one idempotency key creates two runs; if a
// cancelled run does not end as the cancel request was answered; if a clone
// keeps working or a machine's process keeps running; if incomplete files
// remain in the bucket or in the data folder; if the stream of events misses an event of a
// run or gets it twice, or a receiver does not get one; if a time of a schedule has no
// record or two, if runs of a job overlap, or if a slot stays taken. The seed
// determines the faults and their times, but not how the processes run; the
// trace of a failure says what happened.
package chaos
