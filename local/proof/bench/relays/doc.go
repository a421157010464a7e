// Package relays measures the relay of a deployment under load: several concurrent functions
// that append the events of a tenant to its single stream and publish them on the bus.
//
// The function, its use cases and the adapter of DynamoDB run in one bubble of
// testing/synctest, whose clock advances only while every goroutine waits. So all times are
// virtual: a read takes 4 ms, a write 6 ms, a transaction 20 ms and a bus request of ten events
// 15 ms, each plus or minus a fifth. Each partition key of the table accepts 1,000 write and
// 3,000 read units a second. A lane is a part of a shard of the table's stream. Its function is
// called with at most 100 changes as soon as there is one, and again with the changes that it
// has not relayed. All changes of a run are in one lane. The functions' processes are not bound
// to lanes.
package relays
