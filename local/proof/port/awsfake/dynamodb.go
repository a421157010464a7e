package awsfake

import (
	"context"
	"math/big"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sortie-dev/sortie/shared/base/clock"
)

// DynamoDBConfig configures a DynamoDB.
type DynamoDBConfig struct {
	// Clock is required.
	Clock clock.Clock
	// Seed determines lags and stale reads.
	Seed uint64
	// Lag is the maximum time until a write reaches all replicas and indexes; 0 is no lag. Each
	// index applies each write after its own delay.
	Lag time.Duration
	// Stale is the fraction, from 0 to 1, of the eventually consistent reads of items that a
	// lagging replica answers, within Lag after a write.
	Stale float64
	// Plan decides the fates of calls.
	Plan Plan
	// Partition limits the throughput of each partition key; the zero value is no limit.
	Partition Throughput
}

// DynamoDB is the DynamoDB API in process, with any number of tables in one
// account. It is safe for concurrent use.
//
// It implements GetItem, BatchGetItem, Query, Scan, PutItem, UpdateItem, DeleteItem,
// TransactWriteItems, CreateTable, DescribeTable and UpdateTimeToLive, and the
// operations of DynamoDB Streams for one shard.
type DynamoDB struct {
	service
	config     DynamoDBConfig
	throughput throughput

	mu           sync.Mutex
	tables       map[string]*table
	transactions map[string]*transaction
}

// NewDynamoDB returns a service without tables.
func NewDynamoDB(c DynamoDBConfig) *DynamoDB {
	d := &DynamoDB{config: c, tables: map[string]*table{}, transactions: map[string]*transaction{}}
	d.throughput = throughput{limit: c.Partition, clock: c.Clock, used: map[partition]*allowance{}}
	d.service = service{
		namespace: "com.amazonaws.dynamodb.v20120810", plan: c.Plan, handle: d.handle, counts: map[[2]string]int{},
	}
	return d
}

// AWS returns the configuration of clients of the service.
func (d *DynamoDB) AWS() aws.Config { return configuration("http://dynamodb.invalid", d) }

// Settle makes all writes so far visible in all replicas and indexes.
func (d *DynamoDB) Settle() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range d.tables {
		t.catchUp(d.config.Clock.Now().Add(d.config.Lag + 1))
	}
}

// Expire deletes the items whose time to live has passed and returns their number. The service
// deletes them within a few days, so the fake does not delete them automatically.
func (d *DynamoDB) Expire() (count int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.config.Clock.Now()
	for _, t := range d.tables {
		var expired [][2]string
		for key, r := range t.rows {
			if at := rational(r.item[t.ttl]); at != nil && at.Cmp(big.NewRat(now.Unix(), 1)) < 0 {
				expired = append(expired, key)
			}
		}
		slices.SortFunc(expired, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
		for _, key := range expired {
			t.write(key, nil, now, d.config.Lag, d.config.Seed)
		}
		count += len(expired)
	}
	return count
}

// handle returns the call of a request and the function that makes it under the lock.
func (d *DynamoDB) handle(operation string, body []byte) (Call, answer, error) {
	c, do, err := d.operation(operation, body)
	return c, d.locked(do), err
}

// locked returns a function that makes a call under the lock. It throttles whole calls, except
// transactions, whose throttling is a cancellation reason.
func (d *DynamoDB) locked(do answer) answer {
	return func(ctx context.Context, c Call, fate Fate) (any, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if fate == Throttled && c.Operation != "TransactWriteItems" {
			return nil, throttled(c)
		}
		return do(ctx, c, fate)
	}
}

func (d *DynamoDB) operation(operation string, body []byte) (Call, answer, error) {
	switch operation {
	case "GetItem":
		return bind(operation, body, d.getItem)
	case "BatchGetItem":
		return bind(operation, body, d.batchGetItem)
	case "Query":
		return bind(operation, body, d.query)
	case "Scan":
		return bind(operation, body, d.scan)
	case "PutItem", "UpdateItem", "DeleteItem":
		return bind(operation, body, d.writeItem)
	case "TransactWriteItems":
		return bind(operation, body, d.transactWriteItems)
	case "CreateTable":
		return bind(operation, body, d.createTable)
	case "DescribeTable":
		return bind(operation, body, d.describeTable)
	case "UpdateTimeToLive":
		return bind(operation, body, d.updateTimeToLive)
	case "DescribeStream", "GetShardIterator", "GetRecords":
		return bind(operation, body, d.readStream)
	}
	return Call{}, nil, refuse("UnknownOperationException", "the fake has no operation %s", operation)
}

// table returns the table after applying the changes that are visible by now.
func (d *DynamoDB) table(name string) (*table, error) {
	t := d.tables[name[strings.LastIndex(name, "/")+1:]] // a name or an ARN
	if t == nil {
		return nil, refuse("ResourceNotFoundException", "requested resource not found: table %s not found", name)
	}
	t.catchUp(d.config.Clock.Now())
	return t, nil
}

// throttled returns one of the errors for a call above a quota, in rotation.
func throttled(c Call) error {
	codes := []string{"ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"}
	return refuse(codes[c.Number%len(codes)], "throughput exceeds the current capacity")
}
