// Package simulation runs Sortie under a virtual clock: the real state machine file on the real
// engine, and the real use cases, handlers and stores. The simulated world has slow and
// unreliable clients, workers, machines and networks. The seed determines the world, so that a
// failure can be reproduced.
//
//	clients ──► use cases ──► fake.Store ──► SQLite, or DynamoDB's adapter on awsfake
//	   ▲          │  ▲
//	   └─ world ◄─┘  └── local engine, or Step Functions' adapter on awsfake
//	      machines, workers, buckets, lost calls, crashes, outages
//
// Odd seeds use SQLite and the local engine, which crash and restart with the process. Even
// seeds use the adapters of AWS. There every call has its own process, reads are stale, indexes
// lag, transactions conflict, and calls have quotas.
//
// Settings are drawn from their whole ranges (harness/settings.go). Workers use the worker contract, or
// only CALLBACK_URL, and call the real HTTP handlers. They are cloned, frozen and killed, and
// obey the deadline or ignore signals. Their calls are lost, repeated and late. Clients cancel
// during other operations. Strangers stop machines. Services fail for seconds or hours, the
// clocks of hosts are wrong, and contexts end during calls.
//
// Half of the worlds have jobs (jobs.go). Their owners create, change, pause, run and delete
// them. Schedules fire by wake-ups that are late, lost and repeated, and after outages. Each
// time of a schedule starts one run, or one record counts it as skipped, by the job's rule for
// missed times (missed.go). Hooks allow, refuse, fail and hang. Jobs trigger one another in
// chains and circles. An operator drains the pool, resumes it and changes its limits. In every
// tenth world on SQLite and every twentieth on AWS (contended.go), jobs that fire every few
// seconds compete for a few slots of a pool, a job or a key, and Sortie has no faults.
//
// In every fifth world (admissions.go) jobs are requested many times concurrently. Meanwhile
// their limits are raised, lowered and removed, hooks refuse for a while, runs fail, and
// results are cleared. In three of four of these worlds Sortie has no faults. No run takes a
// slot beyond the current limit or before an older waiting run. No run is refused a free slot,
// or waits for one. No run starts that a constraint refused. kill_old keeps the newest run
// (jobslots.go, replacements.go, constraints.go).
//
// In two of fifty worlds (graphs.go) up to 50 jobs come after one another. Their owner runs the first
// one, also for a time, stores another job meanwhile, cancels graphs, and reruns parts of them. Each
// job has one run in a graph. It starts when those that it comes after have ended as needed, and is
// skipped otherwise, or after the cancel of the graph.
//
// Two of fifty worlds (dated.go) take days, and begin before a change of clocks or the end of a
// month; a quarter of them has a repeated hour. Their job has several schedules with limits and
// calendars, whose times package calendar computes again. Clients backfill past times
// (backfills.go): each run is that of its time, urgent last, within the limit of its backfill, never
// too late, and cancelled with all others. Outputs (kept.go) are deleted in time, but not those that
// are pinned or among the newest, and a download changes nothing. A service (notices.go) gets the
// message of each event, under one id, unless it takes none for a day.
//
// In some dated worlds clients pin runs while their outputs expire: an acknowledged pin keeps the
// output, and a pin is refused only within two minutes before the expiry, or after it.
//
// Two of fifty worlds (sensors.go) have up to three jobs with sensors: of events that clients send
// alone or in batches and more than once, of objects of a bucket that are written again and removed, and
// of messages that a queue delivers more than once and in any order. Jobs change and pause, queues are
// full, calls of buckets and queues (harness/items.go) fail or lose their answer, and polls overlap and
// are killed at any call. Each item (items.go) has exactly one run, and none that the sensor does not take.
//
// Every fifth world (capacity/mixed.go) has three to five pools on three platforms, with chains of
// fallbacks, which an operator changes and drains. A cluster (machines/cluster.go) creates a Job without
// a pod, leaves it pending, cannot schedule it or pull its image, evicts it, loses its node,
// and answers 429. Jobs are deleted by hand. The API server is unreachable for minutes, its
// watch is cut, and lists lag. A container engine (machines/containers.go) creates containers that it
// cannot start, dies with or without its containers, and reports exit codes late. A fallback
// (capacity/fallbacks.go) has the answer of a platform as its reason. It never follows the failure of a
// program. It starts when no machine of an earlier attempt can still run on any platform. It
// uses no pool twice, and is recorded with the platforms' messages.
//
// Every fifth world, and a third of the mixed ones, has pools with warm machines
// (capacity/warmpools.go). An operator changes their settings, drains them and deletes them. Machines
// (machines/warmmachines.go) stay in creation, are refused by their host, start late or never, and are
// destroyed by strangers; calls arrive late. A machine (capacity/warmchecks.go) has one claim and is
// started only for it, in its tenant and pool and with its size. An attempt uses another
// machine only after its claimed one is gone without having run anything. It creates one only
// if no warm machine is ready. In some pools (machines/recycling.go) machines are recycled: after an
// ended attempt whose program exited with code 0, for another attempt of the same record and
// tenant, and never while one runs on it. A machine is destroyed or recycled only after its
// record says so. A pool has no more machines than its maximum, and no machine outlives its
// pool, its record or its maximum age.
//
// Every fifth world has one or two pools of engines whose replicas Sortie runs (capacity/replicas.go).
// Operators change the number, the port and the model, reload the pools, switch them to an
// engine at an address, and delete and create them. Meanwhile runs of replicas end, hang, lose
// their machine or their address, and are cancelled. Dispatchers are simulated: tasks have
// slots of replicas according to the store. A replica (capacity/replicachecks.go) has one run at a time,
// and there are as many replicas as the settings allow. Replicas with old settings are replaced
// one after another. The pool does not end a replica while a task has a slot of it. Each wait
// of a replica ends in time. After the last other run all faults end: each pool gets its number
// of replicas, which serve on live machines. Then the pools are deleted, and no run, machine or
// record of a replica is left.
//
// A relay appends the events of commits to the stream, and up to three clients have webhooks
// (streams/relays.go, streams/subscribers.go). Locally the relay and the deliveries are part of the process. On
// AWS each call has its own process, which keeps its memory for later calls unless it is
// killed; the table's stream and the queue repeat calls. Several relays have changes of
// different runs at the same time, and two have the same ones; they wait for their turns
// (streams/writers.go). All are killed before and after each call of the streams and of the webhooks'
// store, whose answers are also lost. Receivers accept, answer 500, 429 and 410, hang, and cut
// the connection after they have received an event, some for hours and some permanently.
// Readers' connections break, and they continue after their last event.
//
// The invariants are checked after every event. Facts never change (invariants.go). Only one
// worker per attempt is accepted. The pool's limit and the order of its queue hold. A limit is
// never applied early. A machine that a run needs is not destroyed. Attempts do not overlap.
// Acknowledged calls are not lost. Each due time of a schedule has one record, compared with a
// second computation of its times (firings.go). Limits of jobs and keys hold. Constraints and
// actions follow the stored definition, as events, messages and triggered runs show
// (constraints.go, jobslots.go). Queues serve by urgency, turn and age (capacity/queues.go, capacity/turns.go).
// Every wait has a bound (prompt.go), which is wider in worlds in which Sortie or its services
// fail. At the end (check.go) a run has ended once, its events have no gaps, the output is that
// of the accepted attempt, and nothing else is left.
//
// The stream has no gap, each fact has one event in it, and the events of a run are in order
// (streams/events.go). When the last run has ended, faults end too, except those of permanently broken
// receivers, and time passes until nothing is left to deliver. Then (streams/settle.go) the stream has
// exactly the committed events, its checkpoints prove the exported file, and each receiver has
// accepted each event of its webhook, unless all attempts failed or the webhook was paused or
// disabled. An ordered webhook has delivered the events of each task in sequence.
//
// Calls run as coroutines on one thread: while a call waits, others run.
package simulation
