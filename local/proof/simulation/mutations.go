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
//	a retry after the deadline is not refused: 3, an attempt began after its deadline
//	a skipped run counts as a success of a graph: 79, a run began although one before it did not end as needed
//	a run after several others begins when one of them has ended: 79, a run began although one before it did not end as needed
//	a rerun of a part ignores the runs of other jobs: 79, a job has no run in its graph
//	all jobs after a run are considered again after an error: 879, the start of what comes after it is pending too long
//	a failed creation of what comes after a run is recorded as done: 129, a job has no run in its graph
//	all waiting children start at once: 20, more children are active than the job allows
//	failures do not stop the start of children: 20, a run still starts children with too many failures
//	a check does not create a child without a run: 20, the counts are not those of the children
//	a cancelled child counts as a success: 20, a child is counted with another end
//	the results are in reverse order: 20, the results are not those of the items in order
//
// Those of constraints need a world with jobs, such as seeds 5, 14, 25, 34, 45 and 75.
