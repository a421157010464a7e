// Package balance distributes inference tasks among the replicas of engine pools.
//
// It knows what this process knows of each replica: its engine, the tasks at it, its reported
// capabilities and its failures. A task takes a Lease, a slot of a ready replica. The tasks of a
// session, and those with the same prompt, go to the same replica unless it has clearly more
// tasks than others. A replica that fails repeatedly rests.
//
// A replica is full if its tasks use its slots, or the context for which its engine has memory.
// The slots are those that the engine reports, or those of the pool if these are fewer. A task
// waits for a full replica until its deadline.
package balance
