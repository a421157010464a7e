package dynamo

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
	"github.com/sortie-dev/sortie/shared/run/decoded"
)

// Store implements port.Store in a DynamoDB table. It is safe for concurrent
// use, by any number of processes.
type Store struct {
	api    API
	config Config
	// pools has until when this process relies on the registrations of pools.
	pools   sync.Map
	surveys surveys
	glances glances
	decoded *decoded.Runs
}

var _ port.Store = (*Store)(nil)

// decodedRuns is how many decoded runs a store remembers: more than an execution environment
// works on at a time, and few enough for its memory.
const decodedRuns = 256

// New returns a store that uses the client. It makes no call.
func New(client API, c Config) (*Store, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return &Store{api: client, config: c.defaults(), decoded: decoded.New(decodedRuns)}, nil
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

// pause sleeps, or returns the error of ctx when that ends first.
func (s *Store) pause(ctx context.Context, d time.Duration) error {
	return clock.Sleep(ctx, s.config.Clock, d)
}

// alive reports whether reads find the record.
func (s *Store) alive(r run.Run) bool { return !r.Expired(s.now()) }

// there reports whether a cleanup still needs the record.
func (s *Store) there(r run.Run) bool { return s.alive(r) || r.BytesLeft() }
