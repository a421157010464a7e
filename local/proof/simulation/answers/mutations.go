package answers

// The simulation finds these mutations of the code, each with the seed and what it reports:
//
//	what an attempt has used is charged twice: 1, a task has used more than its stream says
//	a task that ends in the queue keeps its reservation: 1, it has ended and holds an amount
//	a resumed stream repeats the last event: 1, a reader got an event twice
//	a resumed stream skips the rest of a record: 4, a reader misses a token
//	the writer appends behind the end of a stream: 4, the terminal record is not the last one
//	an answer is tried again after its first token: 1, a reader got a token a second time
//	the task of a killed dispatcher keeps its slot: 3, tasks run after the bound
//	the parts of a call do not count as a part of an answer: 1, a reader gets another call after a cut one
//	the parts of a call are not charged if the attempt fails: 1, a reader got parts and an error with 0 tokens
//	the pieces that an answer has before its turn are dropped: 9, a reader got fewer tokens than the end says
//	the object of a large request has no ticket: 1, it belongs to no run
//	an attempt that ends after the deletion of its answer leaves its stream: 54, the stream has records
//	the reasoning is not charged if the attempt fails: 13, a reader got reasoning and an error with fewer tokens
//	the tokens of a day of an offer limit no task: 2, the account of the offer is over its limit
//	the slots of an offer limit no guest: 62, more runs have a slot than are offered
//	a prompt that is too long for its model is accepted: 2, it did not begin with a fallback
//	a failure of the store counts as a model that cannot serve: 86, a task leaves its share
//	the transcript of an answer is kept after its days: 39, objects are left
