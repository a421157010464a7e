package port

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

const (
	walkPage = 100
	trimPage = 1000
)

// WalkStreams calls do for each stream of a feed whose name begins with a prefix, until ctx
// ends. rest is the name without the prefix. WalkStreams returns the joined errors.
func WalkStreams(ctx context.Context, feed Feed, prefix string, do func(rest string) error) error {
	var failed []error
	for after := ""; ; {
		streams, next, err := feed.Streams(ctx, prefix, after, walkPage)
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

// TrimStream deletes all expired records of a stream, page by page, and returns their number.
func TrimStream(ctx context.Context, feed Feed, stream string) (trimmed int, err error) {
	for {
		n, err := feed.Trim(ctx, stream, trimPage)
		if trimmed += n; err != nil || n < trimPage {
			return trimmed, err
		}
	}
}
