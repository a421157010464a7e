package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/proof/port/sqlitetest"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/port"
)

// watchedOutbox calls published before it removes changes.
type watchedOutbox struct {
	port.CommitOutbox
	published func(ids []string) error
}

func (o watchedOutbox) Published(ctx context.Context, ids ...string) error {
	if err := o.published(ids); err != nil {
		return err
	}
	return o.CommitOutbox.Published(ctx, ids...)
}

// TestChangeStaysInTheOutboxUntilItIsInItsStream drains pages of two tenants while calls
// of the feed fail. A change leaves the outbox after its event is in the stream, and a
// process that ends between the two relays it again, once.
func TestChangeStaysInTheOutboxUntilItIsInItsStream(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			s := newRelayStage(t, fake.Seeded(seed, 0.2))
			db, err := sqlitetest.Open(t.Context(), filepath.Join(sqlitetest.Folder(t), "sortie.db"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			store, err := sqlite.NewStore(t.Context(), db, s.clock)
			if err != nil {
				t.Fatal(err)
			}
			first, other := s.changes("acme", 1, 90), s.changes("other", 1, 60)
			stored := map[string]delivery.Change{}
			for i, c := range slices.Concat(first, other) {
				stored[c.ID] = c
				if err := store.SetAside(t.Context(), port.StoredChange{ID: c.ID, At: s.clock.Now(), Record: fmt.Append(nil, i)}); err != nil {
					t.Fatal(err)
				}
			}
			crash := errors.New("the process ends")
			calls := 0
			outbox := watchedOutbox{store, func(ids []string) error {
				for _, id := range ids {
					c := stored[id]
					s.quiet.Store(true)
					found, err := s.feed.Positions(context.Background(), port.EventStream(c.Run.Tenant), []port.FeedRecord{{ID: c.Events[0].ID, At: c.Events[0].At}})
					s.quiet.Store(false)
					if err != nil || len(found) != 1 {
						t.Errorf("change %s leaves the outbox: got positions %v, %v of its event, want one", id, found, err)
					}
				}
				if calls++; calls%2 == 1 {
					return crash
				}
				return nil
			}}
			read := func(c port.StoredChange) delivery.Change { return stored[c.ID] }
			for range 100 {
				drained, err := s.relay.Drain(t.Context(), outbox, read, nil)
				if err != nil && !errors.Is(err, crash) {
					t.Fatal(err)
				}
				if err == nil && drained.Left == 0 {
					break
				}
				s.clock.Advance(time.Second)
			}
			if left, _, err := store.Stored(t.Context(), "", 200); err != nil || len(left) > 0 {
				t.Errorf("got %d changes in the outbox, %v, want none", len(left), err)
			}
			// The last checkpoint may be lost; a sweep writes it.
			s.quiet.Store(true)
			s.clock.Advance(time.Minute)
			if err := s.sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.wantStream("acme", first)
			s.wantStream("other", other)
		})
	}
}
