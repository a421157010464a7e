package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sortie-dev/sortie/shared/port"
)

const (
	streamPage = 100
	trimPage   = 1000
)

// Sweep writes the checkpoints of the streams whose newest events have none for 10 s, and
// deletes what has expired. Its errors are those of all streams.
func (s *Relay) Sweep(ctx context.Context) error {
	key, err := s.keys.Signing(ctx)
	if err != nil {
		return fmt.Errorf("cannot read the key of events: %w", err)
	}
	return eachStream(ctx, s.feed, port.EventStreams, func(tenant string) error {
		stream := port.EventStream(tenant)
		head, err := s.feed.Head(ctx, stream)
		if err == nil {
			err = s.seal(ctx, key, tenant, head)
		}
		if err != nil {
			return fmt.Errorf("cannot write a checkpoint of tenant %s: %w", tenant, err)
		}
		for {
			trimmed, err := s.feed.Trim(ctx, stream, trimPage)
			if err != nil {
				return fmt.Errorf("cannot trim the stream of tenant %s: %w", tenant, err)
			}
			if trimmed < trimPage {
				return nil
			}
		}
	})
}

// eachStream calls do for each tenant with a stream whose name is a prefix and the tenant,
// until ctx ends, and returns the joined errors.
func eachStream(ctx context.Context, feed port.Feed, prefix string, do func(tenant string) error) error {
	var failed []error
	for after := ""; ; {
		streams, next, err := feed.Streams(ctx, prefix, after, streamPage)
		if err != nil {
			return errors.Join(append(failed, fmt.Errorf("cannot list the streams: %w", err))...)
		}
		for _, stream := range streams {
			if ctx.Err() != nil {
				return errors.Join(append(failed, ctx.Err())...)
			}
			if err := do(strings.TrimPrefix(stream, prefix)); err != nil {
				failed = append(failed, err)
			}
		}
		if after = next; after == "" {
			return errors.Join(failed...)
		}
	}
}
