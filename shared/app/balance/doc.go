// Package balance distributes inference tasks among the replicas of engine pools.
//
// It knows what this process knows of each replica: its engine, the tasks at it, its reported
// capabilities and its failures. A task takes a Lease, a slot of a ready replica. The tasks of a
// session, and those with the same prompt, go to the same replica unless it has clearly more
// tasks than others. A replica that fails repeatedly rests.
package balance
