// Package simulation runs Sortie under a virtual clock: the real state machine
// file on the real engine, the real use cases, handlers and stores, in a
// simulated world of slow and unreliable clients, workers, machines and
// networks. The seed determines the world, so that a failure can be repeated.
//
//	clients ──► use cases ──► fake.Store ──► SQLite, or DynamoDB's adapter on awsfake
//	   ▲          │  ▲
//	   └─ world ◄─┘  └── local engine, or Step Functions' adapter on awsfake
//	      machines, workers, buckets, lost calls, crashes, outages
//
// Odd seeds play on SQLite and the local engine, which crash and restart with
// the process. Even seeds play on the adapters of AWS, where every call has a
// process of its own, reads are stale, indexes lag, transactions conflict, and
// calls have quotas.
//
// Settings come from their whole ranges (settings.go). Workers use the worker
// contract, or CALLBACK_URL alone, and call through the real HTTP handlers. They
// are cloned, frozen, killed, obey the deadline, or ignore signals. Their calls
// are lost, repeated and late. Clients cancel in the middle of other operations.
// Strangers stop machines. Services fail for seconds or hours, the clocks of
// hosts are wrong, and contexts end in the middle of calls.
//
// Half of the worlds have jobs (jobs.go). Their owners create, change, pause, run and
// delete them; schedules fire by wake-ups that are late, lost and repeated, and after outages.
// Each time of a schedule starts one run, or one record counts it as skipped, by the rule of
// missed times of its job (missed.go); hooks
// allow, refuse, fail and hang; jobs trigger one another in chains and circles. An
// operator drains the pool, resumes it and changes its limits. In every tenth world on
// SQLite and every twentieth on AWS (contended.go) jobs that fire every few seconds compete
// for a few slots of a pool, a job or a key, and Sortie has no faults.
//
// In every fifth world (admissions.go) jobs are requested many times at once, while their
// limits are raised, lowered and removed, hooks refuse for a while, runs fail, and results are
// cleared. In three of four of them Sortie has no faults. No run takes a slot beyond the limit
// in force or before an older one that waits; none is refused a slot that is free, or waits for
// it; none starts that a constraint refused; kill_old leaves the newest (jobslots.go,
// replacements.go, constraints.go).
//
// Every fifth world (mixed.go) has three to five pools on three platforms, with fallbacks in
// chains, which an operator changes and drains. A cluster (cluster.go) creates a Job without
// a pod, leaves it pending, cannot schedule it or pull its image, evicts it, loses its node,
// has it deleted by hand, and answers 429; its API server is away for minutes, its watch is
// cut, and lists lag. A container engine (containers.go) creates containers that it cannot
// start, dies with or without its containers, and shows an exit code a moment later. A
// fallback (fallbacks.go) has the answer of a platform as its reason, never follows the
// failure of a program, starts when nothing of the attempts before can run on any platform,
// leads to no pool twice, and is recorded with the platforms' messages.
//
// Every fifth world, and a third of the mixed ones, has pools with warm machines
// (warmpools.go), whose settings an operator changes, drains and deletes. Machines
// (warmmachines.go) stay in their creation, are refused by their host, start late or never,
// and are destroyed by strangers; calls arrive late. A machine (warmchecks.go) has one claim
// and is started for it alone, in its tenant and pool and with its size; an attempt uses
// another one only after its claimed machine is gone and has run nothing, and creates one
// only if none is ready. In some pools (recycling.go) machines are recycled: after an attempt
// that is over, whose program has ended with code 0, for another attempt of the same record and
// tenant, and never while one runs on it; a machine is destroyed or recycled as its record said
// before. A pool has no more machines than its maximum, and none outlives
// its pool, its record or its age.
//
// Every fifth world has one or two pools of engines whose replicas Sortie runs (replicas.go).
// Their operators change the number, the port and the model, reload them, put the engine at an
// address, and delete and create the pools, while runs of replicas end, hang, lose their machine
// or their address, and are cancelled. Dispatchers are played: tasks have slots of replicas that
// the store shows. A replica (replicachecks.go) has one run at a time, as many as the settings
// allow; those of other settings are replaced one after the other; none is ended by its pool
// while a task has a slot of it; what a replica waits for is done in time. After the last other
// run nothing fails any more: each pool gets its number of replicas, which serve on machines that
// live. Then the pools end, and no run, machine or record of a replica is left.
//
// A relay makes the stream of events of what is committed, and up to three clients have
// webhooks (relays.go, subscribers.go). Locally the relay and the deliveries are part of
// the process. On AWS each call has a process of its own, which keeps its memory for later
// calls unless it is killed; the table's stream and the queue repeat calls. Several relays have
// changes of different runs at the same time, and two the same ones; they wait for their turns
// (writers.go). All of them are killed before and after each call of the streams
// and of the webhooks' store, whose answers are also lost. Receivers accept, answer 500,
// 429 and 410, hang, and cut the connection after they have taken an event, some for hours
// and some for good. Readers are cut and continue behind their last event.
//
// After every event the invariants are checked. Facts never change
// (invariants.go): only one worker per attempt is accepted; the pool's limit and
// the order of its queue hold; a limit is never applied early; a machine that a
// run needs is not destroyed; attempts do not overlap; acknowledged calls are
// not lost. Each due time of a schedule has one record, by a second computation
// of its times (firings.go); limits of jobs and keys hold, constraints and
// actions do what the stored definition says, as events, messages and triggered
// runs show (constraints.go, jobslots.go); queues serve by urgency, turn and age (queues.go,
// turns.go).
// Every wait has an end (prompt.go): a bound for worlds in which Sortie and its
// services do not fail, and a wider one for others. At the end (check.go) a run
// has ended once, its events have no gaps, the output is that of the accepted
// attempt, and nothing else is left.
//
// The stream has no gap, each fact has one event in it, and the events of a run are in
// their order (events.go). When the last run has ended, faults end too, except those of
// receivers that never work, and time passes until nothing is left to deliver. Then
// (settle.go) the stream has all committed events and no others, its checkpoints prove
// the exported file, and each receiver has accepted each event of its webhook, unless all
// attempts failed or the webhook was paused or disabled; for an ordered webhook one after
// another in each task.
//
// Calls run as coroutines on one thread: while a call waits, others run.
package simulation
