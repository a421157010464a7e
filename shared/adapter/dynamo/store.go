package dynamo

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/usages"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/decoded"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/port"
)

// Store implements port.Store in a DynamoDB table. It is safe for concurrent
// use, by any number of processes.
type Store struct {
	usages.Reader
	api    API
	config Config
	// pools maps a pool to the time until which this process relies on its registration.
	pools   sync.Map
	surveys surveys
	glances indexScans
	// decoded caches the documents that were read last.
	decoded struct {
		runs       *decoded.Documents[run.Run]
		batches    *decoded.Documents[[]port.FeedRecord]
		deliveries *decoded.Documents[webhook.Delivery]
		heads      *decoded.Documents[feedBytes]
	}
}

var _ port.Store = (*Store)(nil)

// The numbers of decoded runs, batches of events, deliveries and heads of streams that a store
// caches, and of the bytes of their documents. They are more than an execution environment
// works on at a time, and few enough for its memory.
const (
	decodedRuns, decodedBatches, decodedDeliveries, decodedHeads = 256, 256, 1024, 64
	decodedSize                                                  = 512 << 10
)

// New returns a store that uses the client. It makes no call.
func New(client API, c Config) (*Store, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	s := &Store{api: client, config: c.defaults()}
	s.decoded.runs = decoded.New[run.Run](decodedRuns, decodedSize)
	s.decoded.batches = decoded.New[[]port.FeedRecord](decodedBatches, decodedSize)
	s.decoded.deliveries = decoded.New[webhook.Delivery](decodedDeliveries, decodedSize)
	s.decoded.heads = decoded.New[feedBytes](decodedHeads, decodedSize)
	s.Reader = usages.Reader{Table: c.Table, Query: func(ctx context.Context, in *dynamodb.QueryInput) (*dynamodb.QueryOutput, error) {
		return call(ctx, s, s.api.Query, in)
	}}
	return s, nil
}

func (s *Store) now() time.Time { return s.config.Clock.Now() }

// group runs functions concurrently, at most limit at once.
func (s *Store) group(limit int) *errgroup.Group {
	g := &errgroup.Group{}
	g.SetLimit(min(limit, s.config.Concurrency))
	return g
}

// random returns a number from 0 to n-1.
func (s *Store) random(n int) int { return int(s.config.Random() % uint64(n)) } //nolint:gosec // n is positive

// jitter returns a random duration from half of d to one and a half of it.
func (s *Store) jitter(d time.Duration) time.Duration {
	return d/2 + time.Duration(s.random(int(d)+1))
}

// pause sleeps. If ctx ends first, it returns the error of ctx.
func (s *Store) pause(ctx context.Context, d time.Duration) error {
	return clock.Sleep(ctx, s.config.Clock, d)
}

// alive reports whether the record has not expired, so that reads return it.
func (s *Store) alive(r run.Run) bool { return !r.Expired(s.now()) }

// needed reports whether the record is alive, or a cleanup still needs it for an output.
func (s *Store) needed(r run.Run) bool { return s.alive(r) || r.BytesLeft() }
