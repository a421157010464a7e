package dynamo

import (
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// Store implements port.Store in a DynamoDB table. It is safe for concurrent
// use, by any number of processes.
type Store struct {
	api    API
	config Config
	// pools are the pools that this process has registered.
	pools sync.Map
}

var _ port.Store = (*Store)(nil)

// New returns a store that uses the client. It makes no call.
func New(client API, c Config) (*Store, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return &Store{api: client, config: c}, nil
}

func (s *Store) now() time.Time { return s.config.Clock.Now() }

// alive reports whether reads find the record.
func (s *Store) alive(r run.Run) bool { return !r.Expired(s.now()) }

// there reports whether a cleanup still needs the record.
func (s *Store) there(r run.Run) bool { return s.alive(r) || r.BytesLeft() }
