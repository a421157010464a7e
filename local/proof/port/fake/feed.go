package fake

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/port"
)

// Feed stores streams in memory and checks its callers. The subject of a call is the name of
// the stream. It is safe for concurrent use.
type Feed struct {
	calls
	clock     clock.Clock
	retention time.Duration
	misuse    func(error)

	mu      sync.Mutex
	begun   int
	streams map[string]*stream
	cursors map[[2]string]int64
	changed chan struct{} // closed by the next append
}

// stream is a stream whose newest record has the position newest.
type stream struct {
	epoch   string
	newest  int64
	state   []byte
	records []kept[port.FeedRecord]
	marks   []kept[port.Mark]
	dueAt   time.Time
}

// kept is a value with the time of its append.
type kept[T any] struct {
	at    time.Time
	value T
}

var (
	_ port.Feed       = (*Feed)(nil)
	_ port.AnswerFeed = (*Feed)(nil)
)

// NewFeed returns a Feed without streams. misuse is called when a caller appends a record that
// the stream has already, which a caller that uses Positions does not.
func NewFeed(clk clock.Clock, retention time.Duration, plan Plan, misuse func(error)) *Feed {
	return &Feed{
		calls: calls{plan: plan}, clock: clk, retention: retention, misuse: misuse,
		streams: map[string]*stream{}, cursors: map[[2]string]int64{}, changed: make(chan struct{}),
	}
}

// Lose removes a stream, as the restore of an older database does.
func (f *Feed) Lose(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.streams, name)
}

// on makes a call for a stream under the mutex.
func on[T any](ctx context.Context, f *Feed, method, name string, write bool, do func(*stream) (T, error)) (T, error) {
	return result(ctx, &f.calls, method, name, write, func() (none T, err error) {
		if err := port.CheckFeedName(name); err != nil {
			return none, err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		s := f.streams[name]
		if s == nil {
			s = &stream{}
		}
		return do(s)
	})
}

// living returns the elements that have not expired.
func living[T any](f *Feed, all []kept[T]) []kept[T] {
	now := f.clock.Now()
	i := slices.IndexFunc(all, func(k kept[T]) bool { return now.Before(k.at.Add(f.retention)) })
	if i < 0 {
		return nil
	}
	return all[i:]
}

func (f *Feed) head(s *stream) port.Head {
	h := port.Head{Epoch: s.epoch, Newest: s.newest, State: bytes.Clone(s.state)}
	if s.newest > 0 {
		h.Oldest = s.newest - int64(len(living(f, s.records))) + 1
	}
	return h
}

// Head implements port.Feed.
func (f *Feed) Head(ctx context.Context, name string) (port.Head, error) {
	return on(ctx, f, "Head", name, false, func(s *stream) (port.Head, error) { return f.head(s), nil })
}

// Append implements port.Feed.
func (f *Feed) Append(ctx context.Context, name string, b port.Batch) (port.Head, error) {
	return on(ctx, f, "Append", name, true, func(s *stream) (port.Head, error) {
		if err := b.Check(); err != nil {
			return port.Head{}, err
		}
		if s.newest != b.After {
			return port.Head{}, &port.FeedConflict{Newest: s.newest}
		}
		if s.epoch == "" {
			f.begun++
			s.epoch, f.streams[name] = fmt.Sprintf("epoch%d", f.begun), s
		}
		now := f.clock.Now()
		for _, r := range b.Records {
			if slices.ContainsFunc(living(f, s.records), func(k kept[port.FeedRecord]) bool { return k.value.ID == r.ID }) {
				f.misuse(fmt.Errorf("misuse: append of record %s, which stream %q has", r.ID, name))
			}
			s.newest++
			r.Position, r.Data = s.newest, bytes.Clone(r.Data)
			s.records = append(s.records, kept[port.FeedRecord]{now, r})
		}
		if s.dueAt.IsZero() {
			s.dueAt = b.DueAt
		}
		if s.state = bytes.Clone(b.State); b.Mark != nil {
			if last := len(s.marks) - 1; last >= 0 && s.marks[last].value.Position == s.newest {
				s.marks = s.marks[:last]
			}
			s.marks = append(s.marks, kept[port.Mark]{now, port.Mark{Position: s.newest, Data: bytes.Clone(b.Mark)}})
		}
		close(f.changed)
		f.changed = make(chan struct{})
		return f.head(s), nil
	})
}

// Remove implements port.AnswerFeed.
func (f *Feed) Remove(ctx context.Context, name string) error {
	_, err := on(ctx, f, "Remove", name, true, func(*stream) (struct{}, error) {
		delete(f.streams, name)
		return struct{}{}, nil
	})
	return err
}

// Positions implements port.Feed.
func (f *Feed) Positions(ctx context.Context, name string, records []port.FeedRecord) (map[string]int64, error) {
	return on(ctx, f, "Positions", name, false, func(s *stream) (map[string]int64, error) {
		found := map[string]int64{}
		for _, k := range living(f, s.records) {
			if slices.ContainsFunc(records, func(r port.FeedRecord) bool { return r.ID == k.value.ID }) {
				found[k.value.ID] = k.value.Position
			}
		}
		return found, nil
	})
}

// Read implements port.Feed.
func (f *Feed) Read(ctx context.Context, name string, after int64, limit int) ([]port.FeedRecord, error) {
	return on(ctx, f, "Read", name, false, func(s *stream) (page []port.FeedRecord, err error) {
		size := 0
		for _, k := range living(f, s.records) {
			if k.value.Position <= after {
				continue
			}
			if size += len(k.value.Data); len(page) >= limit || len(page) > 0 && size > port.MaxFeedPage {
				break
			}
			page = append(page, k.value)
		}
		return page, nil
	})
}

// Marks implements port.Feed.
func (f *Feed) Marks(ctx context.Context, name string, after int64, limit int) ([]port.Mark, error) {
	return on(ctx, f, "Marks", name, false, func(s *stream) (page []port.Mark, err error) {
		for _, k := range living(f, s.marks) {
			if k.value.Position > after && len(page) < limit {
				page = append(page, k.value)
			}
		}
		return page, nil
	})
}

// Wait implements port.Feed.
func (f *Feed) Wait(ctx context.Context, name string, after int64) error {
	for {
		changed, err := on(ctx, f, "Wait", name, false, func(s *stream) (<-chan struct{}, error) {
			if s.newest > after {
				return nil, nil
			}
			return f.changed, nil
		})
		if err != nil || changed == nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Cursor implements port.Feed.
func (f *Feed) Cursor(ctx context.Context, name, consumer string) (int64, error) {
	return on(ctx, f, "Cursor", name, false, func(*stream) (int64, error) {
		return f.cursors[[2]string{name, consumer}], port.CheckFeedName(consumer)
	})
}

// MoveCursor implements port.Feed.
func (f *Feed) MoveCursor(ctx context.Context, name, consumer string, from, to int64) error {
	_, err := on(ctx, f, "MoveCursor", name, true, func(*stream) (none struct{}, err error) {
		of := [2]string{name, consumer}
		if err := port.CheckFeedName(consumer); err != nil || f.cursors[of] != from {
			if err == nil {
				err = port.ErrConflict
			}
			return none, err
		}
		f.cursors[of] = to
		return none, nil
	})
	return err
}

// Streams implements port.Feed.
func (f *Feed) Streams(ctx context.Context, prefix, after string, limit int) (page []string, next string, err error) {
	page, err = result(ctx, &f.calls, "Streams", prefix, false, func() (names []string, err error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for name := range f.streams {
			if strings.HasPrefix(name, prefix) && name > after {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names, nil
	})
	if len(page) > limit {
		page = page[:max(limit, 1)]
		next = page[len(page)-1]
	}
	return page, next, err
}

// Trim implements port.Feed.
func (f *Feed) Trim(ctx context.Context, name string, limit int) (int, error) {
	return on(ctx, f, "Trim", name, true, func(s *stream) (int, error) {
		records := min(len(s.records)-len(living(f, s.records)), max(limit, 0))
		marks := min(len(s.marks)-len(living(f, s.marks)), max(limit, 0)-records)
		s.records, s.marks = s.records[records:], s.marks[marks:]
		return records + marks, nil
	})
}

// dueStream is a due stream with its time.
type dueStream struct {
	At   time.Time
	Name string
}

func (d dueStream) compare(other dueStream) int {
	return cmp.Or(d.At.Compare(other.At), strings.Compare(d.Name, other.Name))
}

// Due implements port.Feed.
func (f *Feed) Due(ctx context.Context, group string, now time.Time, after string, limit int) (page []string, next string, err error) {
	var last dueStream
	if after != "" {
		if err := json.Unmarshal([]byte(after), &last); err != nil {
			return nil, "", fmt.Errorf("malformed place: %w", err)
		}
	}
	all, err := result(ctx, &f.calls, "Due", group, false, func() (all []dueStream, err error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for name, s := range f.streams {
			d := dueStream{s.dueAt, name}
			if strings.HasPrefix(name, group) && !d.At.IsZero() && !d.At.After(now) && d.compare(last) > 0 {
				all = append(all, d)
			}
		}
		slices.SortFunc(all, dueStream.compare)
		return all, port.CheckFeedGroup(group)
	})
	for _, d := range all[:min(len(all), max(limit, 1))] {
		page = append(page, d.Name)
	}
	if n := len(page); n < len(all) {
		text, err := json.Marshal(all[n-1])
		return page, string(text), err
	}
	return page, "", err
}

// SetDue implements port.Feed.
func (f *Feed) SetDue(ctx context.Context, name string, at time.Time) error {
	_, err := on(ctx, f, "SetDue", name, true, func(s *stream) (none struct{}, err error) {
		s.dueAt = at
		return none, nil
	})
	return err
}

// Settle implements port.Feed.
func (f *Feed) Settle(ctx context.Context, name string, newest int64) error {
	_, err := on(ctx, f, "Settle", name, true, func(s *stream) (none struct{}, err error) {
		if s.newest != newest {
			return none, port.ErrConflict
		}
		s.dueAt = time.Time{}
		return none, nil
	})
	return err
}
