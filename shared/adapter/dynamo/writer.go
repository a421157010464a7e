package dynamo

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/port"
)

var _ port.Writers = (*Store)(nil)

// The writers of a stream are items under a separate partition key, so that they do not use the
// throughput of the stream's partition. Their sort keys are in the order of the queue.
const (
	writerPrefix = "#writers#" // and the stream
	sortWriter   = "writer#"   // the time and the id
)

func writerKey(w port.Writer) item {
	return keyOf(writerPrefix+w.Stream, sortWriter+ordered(w.Since)+"#"+w.ID)
}

// Enqueue implements port.Writers with an unconditional put.
func (s *Store) Enqueue(ctx context.Context, w port.Writer, until time.Time) error {
	put := writerKey(w)
	put[attrUntil], put[schema.TTL] = number(unixNanos(until)), number(wholeSecond(until)+1)
	return wrap(s.send(ctx, []*part{{put: put}}), "queue a writer of", w.Stream)
}

// Ahead implements port.Writers. It counts the queue up to the writer.
func (s *Store) Ahead(ctx context.Context, w port.Writer) (ahead int, err error) {
	own := textOf(writerKey(w)[schema.Sort.Name])
	query := &dynamodb.QueryInput{
		TableName: &s.config.Table, ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: s.returnConsumed(),
		KeyConditionExpression:    aws.String("#pk = :pk AND #sk < :sk"),
		ExpressionAttributeNames:  map[string]string{"#pk": schema.Partition.Name, "#sk": schema.Sort.Name},
		ExpressionAttributeValues: item{":pk": text(writerPrefix + w.Stream), ":sk": text(own)},
	}
	now := unixNanos(s.now())
	err = s.each(ctx, query, func(is item) bool {
		if numberOf(is[attrUntil]) > now {
			ahead++
		}
		return true
	})
	return ahead, wrap(err, "read the writers of", w.Stream)
}

// Leave implements port.Writers.
func (s *Store) Leave(ctx context.Context, w port.Writer) error {
	return wrap(s.send(ctx, []*part{{key: writerKey(w), remove: true}}), "remove a writer of", w.Stream)
}
