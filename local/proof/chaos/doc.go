// Package chaos kills a running stack and its workers at random moments, and
// holds what is left to what was promised.
//
//	plan ──► killer ──SIGKILL, SIGTERM, SIGSTOP──► stack, supervisors, workers (real processes)
//	                                        ▲ │
//	clients ── POST until accepted, follow, download ──┘
//	                                        │
//	after the last blow: records, events, bucket, disk, processes
//
// Package simulation plays the same ideas under a clock of its own and with
// every call failing; here are real processes, a real disk and the kernel's
// kill -9, also while the stack is still starting.
//
// Workers are frozen too, for less and for more than the heartbeat limit, and
// cloned; and clients cancel. Besides the export worker there is one that only
// calls back, and one of the worker contract that is written in another language
// from the contract's text alone.
//
// It promises to notice: a run that was accepted and is lost, never ends, ends
// otherwise than without a kill, ends twice, or has a gap in its events; a file
// that differs by a byte from the one that is made in peace; an attempt that
// was counted without its worker having been killed; two runs for one
// idempotency key; a cancel that ends otherwise than it was answered; a clone
// that works on; a machine's process that lives on; and anything half-written
// that stays in the bucket or in the data folder. One number, the seed, decides
// what is struck and when, but not how the processes run: a failure's log says
// what happened.
package chaos
