// Package dynamo keeps Sortie's state in one DynamoDB table.
//
// It promises what the Store port does, to any number of processes. What was
// committed is read by every read of a run, of its events and heartbeats, of a
// line and of a pool that began later. What is read through an index (List, Due,
// OutputsDue, WithMachine, Purge, which pools there are, whom Mend looks at) may
// lack the commits of the last moment; the records that it gives are read from
// the table, and whoever sweeps comes again. Requests that are throttled, or that
// meet another transaction, are made again until the deadline of their context,
// and for 20 s at most. It refuses to create the table, which is as package
// schema has it, and more than a hundred items in one commit.
//
// # Items
//
//	pk                     sk                        what
//	TENANT#run#ID          run                       the run: record and newest events, packed
//	                       events#BORN#LAST          older events of a run that has many
//	                       beat                      its worker's heartbeats, while one is heard
//	TENANT#pool#NAME       pool                      that the pool is known
//	                       slot#NUMBER               a slot that is held, by whom
//	                       line#SINCE#ID             a place in the line
//	TENANT#key#KEY         key                       an idempotency key: digest and run
//	TENANT#task#TASK       task                      a task id that is not its run's id
//	#reception             note                      since when callbacks are received
//
//	index      pk                        sk           of
//	list       TENANT#living|ended#0..7  birth        runs; with end, the state of one that ended
//	due        act|settle|output|purge#0..15  time    runs that something is to be done about
//	           pool#0                    0            pools
//	machines   0..15                     pk           runs whose machine is known
//
// A commit without a lease or a heartbeat item is one conditional UpdateItem: it
// carries record and events, and its condition is the version. A refusal comes
// with the item as it is, so nobody reads again to learn why. A run's events are
// in its own item until they are more than 2 KiB; then the older ones move, in
// the transaction that brings newer ones, into an item of their own.
//
// Record and events are JSON, compressed against a fixed dictionary: the record
// of an export is 200 to 400 bytes, an event about 40, a task token 500. So an
// export's item is one KB, or a little more while it has a token, and that is
// what a commit is paid by. Indexes hold keys alone, which change seldom: the
// time that a living run is looked at is cut to twelve hours there.
//
// A pool with a limit has its slots as items, numbered below the limit. Who takes
// one chooses a free one by chance and puts it where none is; giving a slot to
// the next in line writes the slot once. No number is counted anywhere, so no
// item is written by all. A line is items under the pool's key, in order. A pool
// without a limit has neither.
//
// # What it costs
//
// In write and read request units (WRU, RRU); n is the number of records read.
//
//	Create                4 WRU; under a key 8
//	Commit                1 or 2 WRU; in a transaction twice that, and 2 for each slot, place
//	                      in line and heartbeat item; 2 or 4 more where it moves in an index
//	Load, Find            1 RRU
//	Events                1 RRU, and 1 for each 4 KB of older ones
//	Beat, LastBeat        1 WRU, 1 RRU
//	Line, Position        1 RRU for each 40 places or so that are read or counted
//	take, grant           1 RRU for each 50 slots that are held; handing on reads none
//	List                  16 queries (8 of a state), n RRU
//	Due, OutputsDue       32 queries, n/2 RRU
//	WithMachine           16 queries, n RRU
//	Pools, Mend           1 RRU for each 40 slots and places; Mend n/2 for the tenant's living runs
//	Purge                 32 queries, n/2 RRU; 4 WRU or so for each that the TTL has left
//
// TestAPlainExportCostsAtMostSixtyWriteUnits has the sum of an export that takes a
// minute in a limited pool, under an idempotency key, whose worker is heard twice
// and whose output is downloaded. Entries of indexes that change in a transaction
// are counted twice there, as the items are. A run whose time limit lies behind the
// next noon or midnight (UTC), and whose start was before, moves in the index of
// what is due twice more, for 8 WRU: one of fourteen with a limit of an hour:
//
//	accepted, under its key              8 WRU
//	admitted, takes its slot             4 WRU
//	token of ContainerCreating           1 WRU
//	machine made                         3 WRU
//	started, opens its heartbeats        6 WRU
//	token of Running                     6 WRU
//	two heartbeats                       2 WRU
//	completed, closes its heartbeats     8 WRU
//	settled, gives its slot back        14 WRU
//	downloaded                           3 WRU
//	output deleted                       3 WRU
//	in all                              58 WRU, 10 RRU
//
// # How hot a key gets
//
// DynamoDB writes 1,000 units a second under one partition key. At 1,000 runs a
// second, of one tenant, in a pool without a limit:
//
//	a run's key           35 WRU in its life, with its heartbeats
//	a key, a task         4 WRU in its life
//	list, living          4,000 WRU/s over 8 keys: 500 each
//	list, ended           2,000 WRU/s over 8 keys: 250 each
//	due, act              4,000 WRU/s over 16 keys: 250 each
//	due, output           5,000 WRU/s over 16 keys: 315 each
//	due, purge            1,000 WRU/s over 16 keys: 63 each
//	machines              3,000 WRU/s over 16 keys: 190 each
//
// A pool with a limit is one key: 4 WRU for each grant out of its line, so 250
// grants a second. BenchmarkGrants has holders hand their slots on.
package dynamo
