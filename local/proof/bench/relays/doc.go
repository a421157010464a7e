// Package relays measures the relay of a deployment under load: the functions that append
// the events of a tenant to its one stream, several at a time, and publish them to the bus.
//
// The function, its use cases and the adapter of DynamoDB run in one bubble of
// testing/synctest, whose clock advances only while every goroutine waits. So all times are
// virtual: a read takes 4 ms, a write 6 ms, a transaction 20 ms and a request of ten events to
// the bus 15 ms, each a fifth more or less. Each partition key of the table takes 1,000 write
// and 3,000 read units in a second. A lane is a part of a shard of the table's stream: its
// function is called with at most 100 changes as soon as it has one, and again with what it
// has not relayed. All changes of a run are in one lane. The processes of the functions are
// not tied to lanes.
package relays
