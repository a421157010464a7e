// Package dynamo stores Sortie's state in one DynamoDB table.
//
// It implements port.Store for any number of processes. Reads by ID (of a run,
// its events, its heartbeats, a job, a queue, a pool) are strongly consistent. Reads
// through an index (List, Jobs, JobsDue, PoolRecords, PoolsDue, Due, OutputsDue,
// WithMachine, Purge, the register of pools, the runs that Reconcile checks) are eventually consistent: they
// may miss the newest commits, but the records they return are read from the table.
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
//	TENANT#pool#NAME       record                    the record of the pool
//	                       pool                      registers the pool
//	                       slot#NUMBER               a held slot and its run
//	                       line#ORDER#ID             a run in the queue, see platform.Slot.Order
//	                       turn#TURN                 the turns of a key in the queue; without TURN, the joins of
//	                                                 a queue with a limit
//	TENANT#job#ID          job                       the job: its record, revision and version
//	                       version#BORN#VERSION      the record of an earlier version
//	                       result                    the result of its run that ended last
//	TENANT#key#KEY         key                       an idempotency key: digest and run
//	TENANT#task#TASK       task                      a task id that differs from its run's id
//	#gate#POOL             note                      the start limiter of a pool
//	#reception             note                      since when heartbeats are received
//	#claim                 note                      the table that has every record
//	#outbox#ID             aside                     a change whose events could not be published
//	#note#TENANT#note#ID   note                      an event without a commit of a run
//	#feed#STREAM           head                      a stream: epoch, newest position, state
//	                       batch#LAST                the records of a batch, up to the position LAST
//	                       mark#POSITION             a mark
//	                       cursor#CONSUMER           the position of a consumer
//	#seats#ROOM            seat#NUMBER               a taken seat of a room
//	#eventkeys             ID                        a public key of events
//
//	index      pk                        sk           entries
//	list       TENANT#living|ended#0..7  birth        runs; end is the state of an ended one, the slots
//	                                                  and their pools of a living one
//	           TENANT#jobs#              id           jobs
//	           TENANT#pools#             id           pools with a record
//	           #feeds                    name         streams
//	jobs       TENANT#job#ID             birth        runs of a job
//	due        act|settle|output|purge#0..15  time    runs with something due
//	           beat#0..3                 time         heartbeats whose limit sweeps check
//	           job#0..3                  time         jobs that fire
//	           drain#0                   time         pools whose drain has a deadline
//	           pool#0                    0            pools
//	machines   0..15                     pk           runs with a known machine
//
// A commit without a lease or a heartbeat item is one UpdateItem of record and events,
// conditional on the version. A refusal returns the item, so no second read is needed to find
// the reason. The item of a run contains its events up to 2 KiB. The transaction that exceeds
// this moves the older ones to an item of their own.
//
// Index attributes change rarely: the due time of a living run is truncated to its
// hour there, or to its minute if it is more than 15 minutes ahead.
//
// The slots of a pool with a limit are items, numbered below the limit. A run takes a random
// free one with a conditional put. A grant to the next queued run rewrites the slot once. There
// is no counter, and so no item that every commit writes. The queue is items under the pool's
// key, in order. A pool without a limit has neither.
//
// The slots of a job are those of the pool job/ID, the slots of a key those of the pool
// key/KEY. The item of a run has the number of its pool's slot in "slot", of its job's in
// "jslot" and of its key's in "kslot". One commit may change all of them, for several runs. A
// run that joins or leaves a queue with a key changes the turns of its key. So concurrent joins
// of one key are transactions on one item. Runs without a key or a job share no item. A pool
// that is unused for three hours is not registered.
//
// The item of a result exists from the creation of its job to its deletion. The commit that
// ends a run updates it unless it has a later result. The commit omits the result if the job
// was deleted.
//
// # Compression
//
// Records and events are JSON, compressed with a fixed dictionary (package
// format): the record of an export takes 200 to 400 bytes, an event about 40, a
// task token 500. The eight commits of a successful export write 6.4 KB in 9
// write units (before transactions and indexes); as plain JSON they write 21.5 KB
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
//	Create                    4 WRU; with an idempotency key 8; for a run of a job 10 and 12
//	Commit                    1 or 2 WRU; in a transaction twice that, and 2 for each slot, queue
//	                          item and heartbeat item; 2 or 4 more for each change of an index entry
//	Load, Find                1 RRU; Find by a task id that differs from the run's id 3
//	SaveJob, FireJob          1 WRU, and 2 for a changed WakeAt; in a transaction twice that, 2 for a
//	                          changed definition and 10 for each run
//	SavePool, DeletePool      2 WRU, and 1 for each change of a deadline
//	LoadJob, LastResult       1 RRU; JobVersion 1 or 2; LoadPool 1
//	Jobs, JobsDue             n RRU; 4 queries a page
//	PoolRecords, PoolsDue    n RRU; 1 query a page
//	Events                    1 RRU, and 1 for each 4 KB of older ones
//	Heartbeat, LastHeartbeat  1 WRU, 1 RRU; the entry of an item in the due index is not moved
//	HeartbeatsDue             4 queries, n/2 RRU for the items whose first limit is over
//	RecordReception           1 WRU, after 1 RRU
//	AddNotes                  2 WRU for each KB of a note, 1 of a single one; SaveJob, DeleteJob, SavePool and
//	                          DeletePool with notes are transactions
//	Queue                     1 RRU for each 40 queue items; QueueLength half of that
//	Line                      2 RRU, 3 with a key; a join and a grant with a key 2 WRU
//	taking a slot             2 RRU, and 1 for each 50 held slots; a grant reads none
//	List                      16 queries (8 with a state, 1 of a job), n RRU; with a state at most
//	                          2,000 entries a page
//	Due, OutputsDue           32 queries a page, n/2 RRU; see below for an index with few entries
//	WithMachine               16 queries a page, n/2 RRU; the same
//	Pools, Reconcile          1 RRU for each 40 slots and queue items; Reconcile 1 for each 50 living
//	                          runs, once for all pools of jobs in a minute
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
//	total                               68 WRU, 13 RRU
//
// TestScheduledRunCostsAtMostSeventyWriteUnits and TestJobCosts measure a job with one
// concurrent run, which fires once a day:
//
//	job created                          8 WRU
//	definition changed                   5 WRU
//	paused or resumed                    1 WRU
//	fired                               16 WRU
//	admitted, takes its slot             6 WRU
//	checked, takes its job's slot        8 WRU, 2 to register the pool of the job, and 2 when it is forgotten
//	token of ContainerCreating           2 WRU
//	machine known                        3 WRU
//	started                              2 WRU
//	token of Running                     4 WRU
//	program has ended                    5 WRU
//	settled, releases both slots        18 WRU, 2 for the result
//	total of a run                      64 WRU, 13.5 RRU
//	firing skipped by the schedule      16 WRU
//	idle month                           0 WRU; the sweep reads no item of a job that is not due
//	job deleted                          8 WRU, and 1 for each earlier version
//
// # The sweep
//
// The first page of Due, OutputsDue, Purge, JobsDue, HeartbeatsDue and WithMachine scans its
// index: half a unit for each 8 KB. With 64 entries or fewer, as in a table without runs,
// this is all of the index, and no query follows. An index that has more is not scanned
// again for ten minutes.
//
// A sweep keeps in memory a page of each list, and 40 bytes for each run with a machine or in a
// pool. The table is computed for 100 runs a second that take 1,000 s each. These are 100,000
// living runs in a limited pool, all with a machine. In RRU each minute:
//
//	Due                    3,500   7,000 runs that are starting or ending
//	WithMachine           52,000   half a unit for each record, and the index
//	Pools, Reconcile       7,000   slots and queue twice, and the index
//	JobsDue                    2   four queries
//	OutputsDue             6,000   12,000 outputs of the present minute and the last
//	Purge                     16   the TTL deletes for nothing
//	total                 68,500   1,150 a second, beside 6,800 WRU and 1,200 RRU a second for the runs
//
// The first limit is DynamoDB's start capacity of an on-demand table, 4,000 WRU and
// 12,000 RRU a second, which doubles within half an hour of use.
//
// # Streams
//
// An append is a transaction: the head, on condition of its newest position, the item of the
// batch, and that of a mark. Records have no items of their own. Positions reads the batches
// since its last call. The first time it reads those since a minute before the oldest record. A
// Feed remembers up to 100,000 ids of a stream. The table's TTL deletes batches and marks late,
// so reads skip expired ones. TestFeedCosts measures Head, Positions and Append of signed
// events of an export, 1.3 KB each, with the state of a tree of a million events. The payload
// of a signed event is stored without its Base64, which hardly compresses. Most batches of one
// to three events take a KB.
//
//	events in a batch        1     3    10    30   100   180
//	WRU of an append         4     4     8    16    44    74
//	WRU of an event        4.0   1.3   0.8   0.5  0.44  0.41
//	RRU of the three calls 2.2   2.2   2.2   2.5   3.5   4.2
//
// A mark takes 2 WRU for each KB, MoveCursor 1 WRU, Cursor 1 RRU, Read 1 RRU for each 4 KB of
// its batches. Wait takes 0.5 RRU for each read of the head: 3,600 RRU an hour at the default
// interval of half a second.
//
// The items of a stream have one partition key, which accepts 1,000 WRU a second. That
// permits 250 appends a second of one event, 1,250 events a second in batches of 10, and
// 2,400 in batches of 180. Appends to one stream follow each other: at 20 ms for a
// transaction there are 50 a second, so 500 events a second in batches of 10 and 1,900 in
// batches of 50. Streams are independent of each other.
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
// The runs of one job share its keys: 4 WRU for each firing with one run, of at most 20,
// and its result, and 2 for each entry in the index of its runs. Each end of a run is a
// transaction on the item of the result, and DynamoDB refuses concurrent ones, which are
// retried. At 20 ms for a transaction this permits about 50 runs a second of one job,
// and 250 firings a second over all jobs for each of the four keys in the due index.
//
// A pool with a limit is one key: 4 WRU for each grant to a queued run, so 250
// grants a second. BenchmarkGrants measures grants.
package dynamo
