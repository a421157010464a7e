// Package schema describes the DynamoDB table of package dynamo: its keys, its
// indexes, what expires and what is streamed.
//
// It is what the adapter, its tests and the stack have in common, so that the
// table that is deployed cannot differ from the one that the adapter uses. It
// promises nothing about items; package dynamo draws them. It needs no SDK, and
// refuses to create anything.
package schema

// Key is an attribute of a key with its DynamoDB type.
type Key struct {
	Name string
	// Type is "S", "N" or "B".
	Type string
}

// Index is a global secondary index. All are sparse: an item that lacks the
// index's partition key is not in it.
type Index struct {
	Name            string
	Partition, Sort Key
	// Include lists the attributes that are projected beside the keys; empty is
	// the projection KEYS_ONLY.
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
	// IndexDue has what the sweep has to look at, by time.
	IndexDue = "due"
	// IndexMachines has the runs whose machine is known, by tenant and id.
	IndexMachines = "machines"
)

// Indexes lists the global secondary indexes.
func Indexes() []Index {
	return []Index{
		{Name: IndexList, Partition: Key{"list", "S"}, Sort: Key{"born", "B"}, Include: []string{"end"}},
		{Name: IndexDue, Partition: Key{"due", "S"}, Sort: Key{"at", "N"}},
		{Name: IndexMachines, Partition: Key{"mach", "S"}, Sort: Partition},
	}
}

// TTL is the attribute by which DynamoDB deletes items, in Unix seconds.
const TTL = "expires_at"

// StreamView is the stream's view type. The new image is enough: a run's item
// says how many of its events came with the last commit.
const StreamView = "NEW_IMAGE"

// StreamFilter is the pattern of the records that a consumer of events needs:
// runs whose last commit had events. Without it each heartbeat would wake the
// consumer.
const StreamFilter = `{"eventName":["INSERT","MODIFY"],"dynamodb":{"NewImage":{"fresh":{"N":[{"exists":true}]}}}}`

// Attributes lists the attributes of all keys once each, as CreateTable and
// CloudFormation want them defined.
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
