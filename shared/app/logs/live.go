package logs

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/base/livelog"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// liveLogs stores the output of current attempts in the bucket that no worker can
// write to.
type liveLogs struct{ outputs port.Outputs }

// head reads the object with the newest chunks. Without an object the head and the ETag are
// zero.
func (l liveLogs) head(ctx context.Context, r run.Run, attempt int) (livelog.Head, string, error) {
	content, etag, err := l.read(ctx, limit.LiveLogHead(r.Tenant, r.TaskID, attempt))
	if errors.Is(err, port.ErrNotFound) {
		return livelog.Head{}, "", nil
	}
	if err != nil {
		return livelog.Head{}, "", err
	}
	h, err := livelog.DecodeHead(content)
	return h, etag, err
}

// segment reads the chunks of a closed segment.
func (l liveLogs) segment(ctx context.Context, r run.Run, attempt int, s livelog.Segment) ([]livelog.Frame, error) {
	content, _, err := l.read(ctx, limit.LiveLogSegment(r.Tenant, r.TaskID, attempt, s.First, s.Last))
	if err != nil {
		return nil, err
	}
	return livelog.DecodeFrames(content)
}

func (l liveLogs) read(ctx context.Context, key string) ([]byte, string, error) {
	body, object, err := l.outputs.Open(ctx, port.Accepted, key, port.Span{})
	if err != nil {
		return nil, "", err
	}
	content, err := io.ReadAll(io.LimitReader(body, 2*limit.Log))
	return content, object.ETag, errors.Join(err, body.Close())
}

// add stores a chunk of the current attempt and returns the head with it. It returns the errors
// of livelog.Head.Accept.
func (l liveLogs) add(ctx context.Context, r run.Run, chunk livelog.Frame) (livelog.Head, error) {
	attempt := r.Attempt.Number
	return l.replace(ctx, r, attempt, func(h livelog.Head) (livelog.Change, error) {
		if known, err := l.known(ctx, r, h, chunk); known || err != nil {
			return livelog.Change{Head: h}, err
		}
		return h.Accept(chunk, limit.Log)
	})
}

// replace changes the head, and repeats the change after a conflict. It does not write an
// unchanged head.
func (l liveLogs) replace(ctx context.Context, r run.Run, attempt int, change func(livelog.Head) (livelog.Change, error)) (livelog.Head, error) {
	for range port.CommitTries {
		h, etag, err := l.head(ctx, r, attempt)
		if err != nil {
			return h, err
		}
		c, err := change(h)
		if err != nil || c.Head.Next == h.Next && c.Head.FollowedUntil.Equal(h.FollowedUntil) {
			return h, err
		}
		if len(c.Closed) > 0 {
			s := c.ClosedSegment()
			key := limit.LiveLogSegment(r.Tenant, r.TaskID, attempt, s.First, s.Last)
			if err := l.outputs.Put(ctx, port.Accepted, key, livelog.ContentType, livelog.EncodeFrames(c.Closed)); err != nil {
				return h, err
			}
		}
		err = l.outputs.Replace(ctx, port.Accepted, limit.LiveLogHead(r.Tenant, r.TaskID, attempt), livelog.ContentType, c.Head.Encode(), etag)
		if errors.Is(err, port.ErrChanged) {
			continue
		}
		if err != nil {
			return h, err
		}
		_ = l.delete(ctx, r, attempt, c.Dropped) // a remaining object is deleted with the record
		return c.Head, nil
	}
	return livelog.Head{}, fault.New(fault.Unavailable, "too many concurrent changes of the output; retry")
}

// known reports whether the chunk was accepted before. It returns ErrContradiction if another
// chunk was accepted with its sequence.
func (l liveLogs) known(ctx context.Context, r run.Run, h livelog.Head, chunk livelog.Frame) (bool, error) {
	place, f, s := h.Find(chunk.Sequence)
	found := true
	switch place {
	case livelog.Unknown:
		return false, nil
	case livelog.Forgotten:
		return true, nil
	case livelog.Closed:
		frames, err := l.segment(ctx, r, r.Attempt.Number, s)
		if errors.Is(err, port.ErrNotFound) { // dropped meanwhile
			return true, nil
		}
		if err != nil {
			return false, err
		}
		f, found = livelog.Among(frames, chunk.Sequence)
	}
	if !found || !f.Same(chunk) {
		return false, livelog.ErrContradiction
	}
	return true, nil
}

// follow records that a client follows the output until a time.
func (l liveLogs) follow(ctx context.Context, r run.Run, until time.Time) error {
	_, err := l.replace(ctx, r, r.Attempt.Number, func(h livelog.Head) (livelog.Change, error) {
		if until.After(h.FollowedUntil) {
			h.FollowedUntil = until
		}
		return livelog.Change{Head: h}, nil
	})
	return err
}

// frames returns the chunks that the reader has not returned yet.
func (l liveLogs) frames(ctx context.Context, r run.Run, attempt int, reader *livelog.Reader) ([]livelog.Frame, error) {
	for range port.CommitTries {
		h, etag, err := l.head(ctx, r, attempt)
		if err != nil || etag == "" {
			return nil, err
		}
		var loaded [][]livelog.Frame
		for _, s := range reader.Wants(h) {
			var frames []livelog.Frame
			if frames, err = l.segment(ctx, r, attempt, s); err != nil {
				break
			}
			loaded = append(loaded, frames)
		}
		if errors.Is(err, port.ErrNotFound) { // dropped meanwhile: the head has changed
			continue
		}
		if err != nil {
			return nil, err
		}
		return reader.Take(h, loaded), nil
	}
	return nil, fault.New(fault.Unavailable, "the output changes too fast; retry")
}

// remove deletes the objects of an attempt.
func (l liveLogs) remove(ctx context.Context, r run.Run, attempt int) error {
	h, etag, err := l.head(ctx, r, attempt)
	if err != nil || etag == "" {
		return err
	}
	if err := l.delete(ctx, r, attempt, h.Segments); err != nil {
		return err
	}
	return l.outputs.Delete(ctx, port.Accepted, limit.LiveLogHead(r.Tenant, r.TaskID, attempt))
}

func (l liveLogs) delete(ctx context.Context, r run.Run, attempt int, segments []livelog.Segment) error {
	for _, s := range segments {
		if err := l.outputs.Delete(ctx, port.Accepted, limit.LiveLogSegment(r.Tenant, r.TaskID, attempt, s.First, s.Last)); err != nil {
			return err
		}
	}
	return nil
}
