package dynamo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sortie-dev/sortie/shared/clock"
)

// API is what the store asks of DynamoDB; the SDK's client has it.
type API interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
}

// Config says which table it is and how it is used.
type Config struct {
	// Table is the table's name or ARN. It is made as package schema says.
	Table string
	// Clock tells which records have expired.
	Clock clock.Clock
	// TTLGrace is how long Purge leaves an expired record to the table's TTL,
	// whose deletes cost nothing; AWS promises them within a few days. 0 has
	// Purge delete at once, for a write unit and more each.
	TTLGrace time.Duration
	// PlainItems stores records and events of new writes as JSON text that a
	// console shows, without compression. Stores with and without it read each
	// other's items. The package comment says what compression saves.
	PlainItems bool
	// Consumed, where it is not nil, is told what each request that succeeded
	// has consumed, in write and read request units, by the operation's name in
	// the API. It may be called from anywhere at once. DynamoDB Local tells a
	// wrong number for transactions: the kilobytes of all their items together,
	// four times, where DynamoDB counts those of each item, twice.
	Consumed func(operation string, wru, rru float64)
}

func (c Config) check() error {
	var problems []error
	if c.Table == "" {
		problems = append(problems, errors.New("the table's name is missing"))
	}
	if c.Clock == nil {
		problems = append(problems, errors.New("the clock is missing"))
	}
	if c.TTLGrace < 0 {
		problems = append(problems, errors.New("the grace of the TTL is negative"))
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("cannot use the table: %w", err)
	}
	return nil
}

// Open makes a store with a client of its own, which leaves it to the store to
// ask again. It makes no call.
func Open(cfg aws.Config, c Config) (*Store, error) {
	return New(dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }), c)
}
