// Package dynamo stores Sortie's state in one DynamoDB table.
//
// It implements port.Store for any number of processes. Reads by ID (of a run,
// its events, its heartbeats, a queue, a pool) are strongly consistent. Reads
// through an index (List, Due, OutputsDue, WithMachine, Purge, the register of
// pools, the runs that Reconcile checks) are eventually consistent: they may miss
// the newest commits, but the records they return are read from the table.
// Throttled requests and transaction conflicts are retried until the deadline of
// the context, for at most 20 s. The package does not create the table, which
// package schema describes, and refuses a commit of more than a hundred items.
//
// # Items
//
//	pk                     sk                        content
//	TENANT#run#ID          run                       the run: record and newest events
//	                       events#BORN#LAST          older events of a run that has many
//	                       beat                      the heartbeats of its worker
//	TENANT#pool#NAME       pool                      registers the pool
//	                       slot#NUMBER               a held slot and its run
//	                       line#SINCE#ID             a run in the queue
//	TENANT#key#KEY         key                       an idempotency key: digest and run
//	TENANT#task#TASK       task                      a task id that differs from its run's id
//	#gate#POOL             note                      the start gate of a pool
//	#reception             note                      since when heartbeats are received
//	#claim                 note                      the table that has every record
//
//	index      pk                        sk           entries
//	list       TENANT#living|ended#0..7  birth        runs; end is the state of an ended one, the slot
//	                                                  and pool of a living one
//	due        act|settle|output|purge#0..15  time    runs with something due
//	           beat#0..3                 time         heartbeats whose limit sweeps check
//	           pool#0                    0            pools
//	machines   0..15                     pk           runs with a known machine
//
// A commit without a lease or a heartbeat item is one conditional UpdateItem with
// record and events, conditional on the version. A refusal returns the item, so
// no second read is needed to find the reason. The item of a run contains its
// events up to 2 KiB. The transaction that exceeds this moves the older ones to
// an item of their own.
//
// Index attributes change rarely: the due time of a living run is truncated to its
// hour there, or to its minute if it is more than 15 minutes ahead.
//
// The slots of a pool with a limit are items, numbered below the limit. A run
// takes a random free one with a conditional put. A grant to the next queued run
// rewrites the slot once. There is no counter, and so no item that every commit
// writes. The queue is items under the pool's key, in order. A pool without a
// limit has neither.
//
// # Compression
//
// Records and events are JSON, compressed with a fixed dictionary (package
// format): the record of an export takes 200 to 400 bytes, an event about 40, a
// task token 500. The eight commits of a successful export write 6.1 KB in 9
// write units (before transactions and indexes); as plain JSON they write 20.2 KB
// in 24 units. TestCompressionSavesWriteUnits measures this.
//
// Config.PlainItems (SORTIE_PLAIN_ITEMS=true) stores new documents as plain JSON
// text, which a console shows. All stores read both forms, so the setting can
// change at any time. "sortie inspect" shows items of both forms.
//
// # Cost
//
// In write and read request units (WRU, RRU); n is the number of records read.
//
//	Create                    4 WRU; with an idempotency key 8
//	Commit                    1 or 2 WRU; in a transaction twice that, and 2 for each slot, queue
//	                          item and heartbeat item; 2 or 4 more for each change of an index entry
//	Load, Find                1 RRU
//	Events                    1 RRU, and 1 for each 4 KB of older ones
//	Heartbeat, LastHeartbeat  1 WRU, 1 RRU; the entry of an item in the due index is not moved
//	HeartbeatsDue             4 queries, n/2 RRU for the items whose first limit is over
//	RecordReception           1 WRU, after 1 RRU
//	Queue                     1 RRU for each 40 queue items; QueueLength half of that
//	taking a slot             2 RRU, and 1 for each 50 held slots; a grant reads none
//	List                      16 queries (8 with a state), n RRU; with a state at most 2,000 entries a page
//	Due, OutputsDue           32 queries a page, n/2 RRU
//	WithMachine               16 queries a page, n/2 RRU
//	Pools, Reconcile          1 RRU for each 40 slots and queue items; Reconcile 1 for each 50 living runs
//	Purge                     32 queries, n/2 RRU; about 4 WRU for each record that the TTL has left
//
// TestPlainExportCostsAtMostSeventyWriteUnits measures an export that takes a
// minute in a limited pool, with an idempotency key, two heartbeats and a
// download. It counts index entries that change in a transaction twice, as the
// items. A run whose start limit spans the end of an hour changes its entry in the
// due index twice more, for 8 WRU: one of five with a limit of ten minutes.
//
//	accepted, under its key              8 WRU
//	admitted, takes its slot             6 WRU
//	token of ContainerCreating           1 WRU
//	machine known                        3 WRU
//	started, opens its heartbeats        6 WRU
//	token of Running                    10 WRU
//	two heartbeats                       2 WRU
//	completed, closes its heartbeats    12 WRU
//	settled, releases its slot          14 WRU
//	downloaded                           3 WRU
//	output deleted                       3 WRU
//	total                               68 WRU, 12 RRU
//
// # The sweep
//
// A sweep keeps a page of each list in memory, and 40 bytes for each run with a
// machine or in a pool. Computed for 100 runs a second that take 1,000 s each, so
// 100,000 living runs in a limited pool, all with a machine, in RRU each minute:
//
//	Due                    3,500   7,000 runs that are starting or ending
//	WithMachine           52,000   half a unit for each record, and the index
//	Pools, Reconcile       7,000   slots and queue twice, and the index
//	OutputsDue             6,000   12,000 outputs of the present minute and the last
//	Purge                     16   the TTL deletes for nothing
//	total                 68,500   1,150 a second, beside 6,800 WRU and 1,200 RRU a second for the runs
//
// The first limit is DynamoDB's start capacity of an on-demand table, 4,000 WRU and
// 12,000 RRU a second, which doubles within half an hour of use.
//
// # Throughput per key
//
// DynamoDB accepts 1,000 write units a second per partition key. At 1,000 runs a
// second, of one tenant, in a pool without a limit:
//
//	a run's key           35 WRU in total, with its heartbeats
//	a key, a task         4 WRU in total
//	list, living          6,000 WRU/s over 8 keys: 750 each
//	list, ended           2,000 WRU/s over 8 keys: 250 each
//	due, act             12,000 WRU/s over 16 keys: 750 each
//	due, output           5,000 WRU/s over 16 keys: 315 each
//	due, purge            1,000 WRU/s over 16 keys: 63 each
//	machines              3,000 WRU/s over 16 keys: 190 each
//
// A pool with a limit is one key: 4 WRU for each grant to a queued run, so 250
// grants a second. BenchmarkGrants measures grants.
package dynamo
