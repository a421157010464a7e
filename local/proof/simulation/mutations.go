package simulation

// The simulation finds these mutations of the code, each with the seed and what it reports:
//
//	the relay does not look for known events: 2, an event has two positions
//	the relay's function names no failed records: 2, an event is behind one that is not its predecessor
//	the cursor of a webhook moves before the attempts: 2, a receiver did not get an event
//	events of a task are sent at once to an ordered webhook: 1, a receiver got an event before an earlier one
//	SQLite stores no events of changed webhooks: 1, the stream misses an event
//	the bus moves its cursor before it publishes: 2, the bus misses events
//	no checkpoint of the last events: 3, the last checkpoint does not have all events
//	an attempt without an answer counts as a success: 2, its receiver did not accept the delivery
//	a page of events ends one event late: 2, a reader misses an event
//	constraints are not evaluated again after a wait: 5, a run is to start without a slot of its job
//	a cancelled previous run counts as a success: 34, a run is to start, and the previous run is Cancelled
//	kill_old ends the newest of the older runs: 34, a run was replaced with too few newer ones
//	kill_old ends one run more than needed: 54, a run was replaced with too few newer ones
//	a retry is planned after the deadline: 40, a run is to be retried after its deadline
//	a slot is granted, and an attempt begins, after the deadline: 49, an attempt began after its deadline
//	a skipped run counts as a success of a graph: 79, a run began although one before it did not end as needed
//	a run after several others begins when one of them has ended: 79, a run began although one before it did not end as needed
//	a rerun of a part ignores the runs of other jobs: 79, a job has no run in its graph
//	a failed creation of what comes after a run is recorded as done: 129, a job has no run in its graph
//	all waiting children start at once: 20, more children are active than the job allows
//	failures do not stop the start of children: 20, a run still starts children with too many failures
//	a check does not create a child without a run: 20, the counts are not those of the children
//	a cancelled child counts as a success: 20, a child is counted with another end
//	the results are in reverse order: 20, the results are not those of the items in order
//	dates of calendars fire: 49, a job fired for a time that its schedule does not name
//	firings that a calendar moves are lost: 49, the backfill of a time is refused
//	a firing moves to a date of another calendar: 199, a job fired for a time that its schedule does not name
//	a firing that moves to weekdays moves to a weekend: 740, a job fired for a time that its schedule does not name
//	L-2 also selects the day before: 2240, a job fired for a time that its schedule does not name
//	LW ignores that the last day is a Sunday: 149, an earlier time has no record
//	startAt is ignored: 390, a job fired for a time that its schedule does not name
//	15W ignores that the 15th is a Sunday: 699, a job lost a time
//	endAt is ignored: 249, a job fired for a time that its schedule does not name
//	WED#1 ignores the 7th: 340, the backfill of a time is refused
//	a repeated hour fires twice: 349, a job fired for a time that its schedule does not name
//	times in a gap of the clocks are lost: 549, an earlier time has no record
//	only the first of several schedules fires: 49, an earlier time has no record
//	a backfill has normal priority: 49, a run of a backfill has the priority normal
//	a backfill has ids of its own: 49, a backfill is not the run of its time
//	a backfill has a catch-up window: 49, a run of a backfill is too late
//	a backfill has no key: 49, a run has a key which its client did not send
//	the label of a backfill is missing: 49, a run is of a backfill that no client requested
//	a message that is not taken is given up: 49, a run gave up a message after one try
//	no message on a retry, or when late: 49, a run ended without its action
//	no message on a skip: 149, a run ended without its action
//	a new execution drops pending messages: 40, a run ended without its action
//	one less of the newest runs is kept: 40, an output was deleted with too few newer ones
//	a late pin is acknowledged: 240, an output was deleted, and the run is pinned
//	pins are ignored: 149, an output was deleted, and the run is pinned
//	the run of an item has a random id: 39, an event is acknowledged with another run
//	an object is remembered before its run is stored: 30, an item is lost
//	messages are deleted before their runs are stored: 130, an item is lost
//	kept runs are not checked again: 40, an output is not deleted
//
// These were found in earlier worlds, and have no known seed in those that are drawn now:
//
//	all jobs after a run are considered again after an error
//	15W ignores that the 15th is a Saturday
//
// Those of constraints need a world with jobs, such as seeds 5, 14, 25, 34, 45 and 75.
