// Package schema describes the DynamoDB table of package dynamo: keys, indexes,
// expiry and stream.
//
// The adapter, its tests and the deployed stack share it, so that the deployed
// table cannot differ from the one that the adapter uses. Package dynamo
// describes the items. This package uses no SDK and creates nothing.
package schema

// Key is an attribute of a key with its DynamoDB type.
type Key struct {
	Name string
	// Type is "S", "N" or "B".
	Type string
}

// Index is a global secondary index. All are sparse: an item without the
// index's partition key is not in it.
type Index struct {
	Name            string
	Partition, Sort Key
	// Include lists the attributes projected besides the keys; empty is the
	// projection KEYS_ONLY.
	Include []string
}

// Partition and Sort are the table's own key.
var (
	Partition = Key{"pk", "S"}
	Sort      = Key{"sk", "S"}
)

// The names of the indexes.
const (
	// IndexList has each run under its tenant, by creation.
	IndexList = "list"
	// IndexDue has the sweep's work, by time.
	IndexDue = "due"
	// IndexJobs has each run of a stored job under the job, by creation.
	IndexJobs = "jobs"
	// IndexMachines has the runs with a known machine, by tenant and id.
	IndexMachines = "machines"
)

// Indexes lists the global secondary indexes.
func Indexes() []Index {
	return []Index{
		{Name: IndexList, Partition: Key{"list", "S"}, Sort: Key{"born", "B"}, Include: []string{"end"}},
		{Name: IndexDue, Partition: Key{"due", "S"}, Sort: Key{"at", "N"}},
		{Name: IndexJobs, Partition: Key{"job", "S"}, Sort: Key{"born", "B"}},
		{Name: IndexMachines, Partition: Key{"mach", "S"}, Sort: Partition},
	}
}

// Prefixes of partition keys: SeatPartitions those of seats, ConnectionPartitions those of
// connections. Some functions write only items with these prefixes, and have no write access to
// the rest of the table.
const (
	SeatPartitions       = "#seats#"
	ConnectionPartitions = "#connection-"
)

// TTL is the attribute by which DynamoDB deletes items, in Unix seconds.
const TTL = "expires_at"

// StreamView is the stream's view type. The new image suffices: a run's item
// says how many of its events are of the last commit.
const StreamView = "NEW_IMAGE"

// StreamFilter is the pattern of the records that a consumer of events needs:
// runs whose last commit had events, and notes. Without it each heartbeat would invoke
// the consumer.
const StreamFilter = `{"eventName":["INSERT","MODIFY"],"dynamodb":{"NewImage":{"fresh":{"N":[{"exists":true}]}}}}`

// Attributes lists the attributes of all keys once each, for CreateTable and
// CloudFormation.
func Attributes() []Key {
	all := []Key{Partition, Sort}
	known := map[Key]bool{Partition: true, Sort: true}
	for _, index := range Indexes() {
		for _, key := range []Key{index.Partition, index.Sort} {
			if !known[key] {
				known[key] = true
				all = append(all, key)
			}
		}
	}
	return all
}
