package awsfake

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// stream has the changes of a table with their new images, in one shard.
type stream struct{ records []streamRecord }

type streamRecord struct {
	EventName string    `json:"eventName"`
	Change    newImages `json:"dynamodb"`
	// encoded is the record in JSON, or nil before its first use.
	encoded json.RawMessage
}

type newImages struct {
	SequenceNumber              string
	ApproximateCreationDateTime int64 // seconds since 1970
	Keys                        item
	NewImage                    item `json:",omitempty"`
}

const (
	streamPrefix = "arn:aws:dynamodb:" + Region + ":" + Account + ":table/"
	shard        = "shardId-00000000000000000000-00000001"
	maxRecords   = 1000
)

// add records a change. It skips a write that changes nothing.
func (s *stream) add(before, after item, t *table, now time.Time) {
	event := "MODIFY"
	is := after
	switch {
	case before == nil:
		event = "INSERT"
	case after == nil:
		event, is = "REMOVE", before
	case equalItems(before, after):
		return
	}
	number := fmt.Sprintf("%021d", len(s.records)+1)
	s.records = append(s.records, streamRecord{EventName: event, Change: newImages{number, now.Unix(), t.keyIn(t.own, is), after}})
}

// StreamRecords returns the records of a table's stream after the first from records, as Lambda
// delivers them. It leaves out records whose new image does not have the attribute. all is the
// total number of records.
func (d *DynamoDB) StreamRecords(table, attribute string, from int) (records []json.RawMessage, all int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.tables[table]
	later := t.stream.records[from:]
	for i := range later {
		r := &later[i]
		if _, has := r.Change.NewImage[attribute]; !has {
			continue
		}
		if r.encoded == nil {
			if r.encoded, err = json.Marshal(r); err != nil {
				return nil, 0, fmt.Errorf("cannot encode a record of the stream: %w", err)
			}
		}
		records = append(records, r.encoded)
	}
	return records, len(t.stream.records), nil
}

// readStream has the fields of the three requests for streams.
type readStream struct {
	StreamArn, ShardId, ShardIteratorType, ShardIterator string //nolint:revive // the API's spelling
}

func (r *readStream) call() (string, bool) { return "", false }

func (d *DynamoDB) readStream(_ context.Context, c Call, r *readStream, _ Fate) (any, error) {
	arn, position, _ := strings.Cut(r.ShardIterator, " ")
	t, err := d.table(strings.TrimPrefix(r.StreamArn+arn, streamPrefix))
	if err != nil || t.stream == nil {
		return nil, refuse("ResourceNotFoundException", "stream not found: %s", r.StreamArn+arn)
	}
	switch c.Operation {
	case "DescribeStream":
		type id struct{ ShardId string } //nolint:revive // the API's spelling
		return struct{ StreamDescription struct{ Shards []id } }{struct{ Shards []id }{[]id{{shard}}}}, nil
	case "GetShardIterator":
		if r.ShardIteratorType != "TRIM_HORIZON" {
			return nil, invalid("the fake supports the iterator TRIM_HORIZON, got %s", r.ShardIteratorType)
		}
		return struct{ ShardIterator string }{r.StreamArn + " 0"}, nil
	}
	from, err := strconv.Atoi(position)
	if err != nil || from < 0 || from > len(t.stream.records) {
		return nil, refuse("TrimmedDataAccessException", "invalid iterator %s", r.ShardIterator)
	}
	to := min(from+maxRecords, len(t.stream.records))
	return struct {
		Records           []streamRecord
		NextShardIterator string
	}{t.stream.records[from:to], arn + " " + strconv.Itoa(to)}, nil
}
