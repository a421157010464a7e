// Package chaos kills a running stack and its workers at random times and checks that no
// accepted run is lost.
//
//	plan ──► injector ──SIGKILL, SIGTERM, SIGSTOP──► stack, supervisors, workers (real processes)
//	                                          ▲ │
//	clients ── POST until accepted, follow, download ──┘
//	                                          │
//	after the last fault: check records, events, bucket, disk, processes
//
// Package simulation injects more kinds of faults under a virtual clock. This package uses real
// processes, a real disk and SIGKILL, even during the start of the stack.
//
// Workers are also frozen, for less and for more than the heartbeat limit, and cloned, and
// clients cancel. Besides the export worker there is one that only makes the callback, and one
// in Python that is written from the text of the worker contract.
//
// Jobs fire while the faults are injected. Each has a schedule, a limit of one run, and a
// different action on a second one. One triggers another job.
//
// Five webhooks get the events of all runs. Until the last fault their receivers accept, answer
// 500, cut connections, are slow, and hang.
//
// The test fails if an accepted run is lost, does not end, ends twice, ends in a state that no
// fault explains, or has a gap in its events. It fails if a file differs from the one produced
// without faults; if an attempt is counted although its worker was not killed; if one
// idempotency key creates two runs; or if a cancelled run does not end as the answer to the
// cancel request said. It fails if a clone keeps working or a machine's process keeps running;
// if incomplete files remain in the bucket or the data folder; if the event stream lacks or
// repeats an event of a run; or if a receiver does not get an event. It fails if a time of a
// schedule has no record or two, if runs of a job overlap, or if a slot is not released. The
// seed determines the faults and their times, but not the scheduling of the processes; the
// trace of a failure shows what happened.
package chaos
