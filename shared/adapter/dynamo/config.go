package dynamo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sortie-dev/sortie/shared/base/clock"
)

// API is the part of the SDK's client that the store uses.
type API interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
}

// Config configures a Store.
type Config struct {
	// Table is the table's name or ARN. Package schema describes the table.
	Table string
	// Clock decides which records have expired, and times the pauses between
	// retries.
	Clock clock.Clock
	// Random returns 64 random bits, from which nonces, request tokens, slots
	// and pauses are drawn; nil means the host's generator.
	Random func() uint64
	// Concurrency is the largest number of concurrent requests of one call of
	// the store; 0 means as many as the call can use, at most 32. With 1 their
	// order is constant.
	Concurrency int
	// TTLGrace is how long Purge leaves an expired record to the table's TTL,
	// whose deletes are free and take up to a few days. With 0 Purge deletes at
	// once, for a write unit or more each.
	TTLGrace time.Duration
	// ScanAge is the largest age at which a scan of a small index is reused for a read of due
	// work. A scan serves one read of each kind of work, so a repeated read scans again. With 0
	// each read scans, for half a read unit for each 8 KB.
	ScanAge time.Duration
	// PlainItems stores records and events of new writes as JSON text that a
	// console shows, without compression. Stores with and without it read each
	// other's items. The package comment says what compression saves.
	PlainItems bool
	// Consumed, if not nil, is called with the write and read request units of
	// each successful request and the operation's name in the API. It must be
	// safe for concurrent use. DynamoDB Local reports wrong figures for
	// transactions: the kilobytes of all items together, times four, where
	// DynamoDB counts those of each item, times two.
	Consumed func(operation string, wru, rru float64)
}

func (c Config) check() error {
	var problems []error
	if c.Table == "" {
		problems = append(problems, errors.New("missing table name"))
	}
	if c.Clock == nil {
		problems = append(problems, errors.New("missing clock"))
	}
	if c.Concurrency < 0 {
		problems = append(problems, errors.New("negative concurrency"))
	}
	if c.TTLGrace < 0 {
		problems = append(problems, errors.New("negative TTL grace"))
	}
	if c.ScanAge < 0 {
		problems = append(problems, errors.New("negative age of scans"))
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("invalid configuration of the table: %w", err)
	}
	return nil
}

func (c Config) defaults() Config {
	if c.Random == nil {
		c.Random = rand.Uint64
	}
	if c.Concurrency == 0 {
		c.Concurrency = 32
	}
	return c
}

// Open returns a store with its own client, whose retries are off because the
// store retries. It makes no call.
func Open(cfg aws.Config, c Config) (*Store, error) {
	return New(dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }), c)
}
