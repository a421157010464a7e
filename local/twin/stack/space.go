package stack

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

const (
	// shedRuns and shedEvents limit the runs, and the events per tenant, that are removed
	// between two checks of the size. shedRounds limits the rounds of a sweep.
	shedRuns, shedEvents, shedRounds = 4, 200, 500
	// shedAge is the minimum age of removed records. Clients still wait for newer ones.
	shedAge = 10 * time.Second
	// shrinkPages limits the pages of 4 KiB that a sweep returns to the disk.
	shrinkPages = 4096
	// fullPause is the time between two warnings that the limit cannot be kept.
	fullPause = 10 * time.Minute
)

// compact prepares a file of an earlier version for shrinking. It runs after all parts have
// accepted the folder. Without disk space for a copy the stack works as before, and the next
// start retries.
func (s *Stack) compact(ctx context.Context) error {
	done, err := s.db.Compact(ctx)
	switch {
	case done:
		s.config.Log.InfoContext(ctx, "compacted the database once, so that its file shrinks after deletions", "file", s.db.Path())
	case fault.Is(err, fault.StoreFull), fault.Is(err, fault.Unavailable) && ctx.Err() == nil:
		s.config.Log.WarnContext(ctx, "cannot compact the database, so its file does not shrink; the next start tries again; it needs up to twice the size of the file", "error", err.Error())
		return nil
	}
	return err
}

// keepLimit removes the oldest ended runs and events while the records exceed the limit. It
// returns free pages to the disk. The sweep has purged expired records before.
func (s *Stack) keepLimit(ctx context.Context) error {
	err := s.shed(ctx)
	_, shrunk := s.db.Shrink(ctx, shrinkPages)
	return errors.Join(err, shrunk, s.bucket.Shrink(ctx, shrinkPages))
}

func (s *Stack) shed(ctx context.Context) error {
	limit := s.config.Settings.Disk.Limit
	if limit == 0 {
		return nil
	}
	before := s.clock.Now().Add(-shedAge)
	for range shedRounds {
		size, err := s.db.Size(ctx)
		if err != nil || size.Used <= limit {
			return err
		}
		shed, err := s.shedOldest(ctx, before)
		if err != nil {
			return fmt.Errorf("cannot remove old records: %w", err)
		}
		if shed == 0 {
			if now := s.clock.Now(); now.Sub(s.fullSince) >= fullPause {
				s.fullSince = now
				s.config.Log.WarnContext(ctx, "the records are larger than SORTIE_STORE_LIMIT, and nothing is left that ended more than 10 s ago", "bytes", size.Used, "limit", limit)
			}
			return nil
		}
	}
	return nil
}

// shedOldest removes a batch of the oldest runs that ended before the time. It first removes
// the events that are older than these runs, and a run only when no such event is left.
func (s *Stack) shedOldest(ctx context.Context, before time.Time) (shed int, err error) {
	refs, err := s.store.Ended(ctx, shedRuns)
	if err != nil {
		return 0, err
	}
	until := before
	if len(refs) > 0 {
		last, err := s.store.Load(ctx, refs[len(refs)-1])
		if err != nil && !errors.Is(err, port.ErrNotFound) {
			return 0, err
		}
		if err == nil && last.EndedAt.Before(until) {
			until = last.EndedAt
		}
	}
	after := ""
	for {
		streams, next, err := s.feed.Streams(ctx, port.EventStreams, after, 100)
		if err != nil {
			return shed, err
		}
		for _, each := range streams {
			events, err := s.feed.Shed(ctx, each, until, shedEvents)
			if shed += events; err != nil {
				return shed, err
			}
		}
		if after = next; next == "" {
			break
		}
	}
	if shed > 0 || len(refs) == 0 {
		return shed, nil
	}
	if _, err := s.engine.Purge(ctx, until); err != nil {
		return 0, err
	}
	return s.system.Shed(ctx, refs, before)
}
