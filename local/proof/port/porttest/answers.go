package porttest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sortie-dev/sortie/shared/port"
)

// AnswersHarness is an adapter of port.AnswerFeed without streams.
type AnswersHarness struct {
	port.AnswerFeed
	// Other is another instance with the same streams, like one in another process.
	Other port.AnswerFeed
	// Retention is the retention of the streams. Now returns the time of the adapter's clock,
	// and Advance advances it.
	Retention time.Duration
	Now       func() time.Time
	Advance   func(d time.Duration)
}

// Answers is the conformance suite of port.AnswerFeed. An adapter of port.Feed passes it too.
func Answers(t *testing.T, open func(t *testing.T) AnswersHarness) {
	t.Helper()
	for name, test := range map[string]func(answersTest){
		"empty stream":                       emptyAnswer,
		"records are read from any position": answerFromAnyPosition,
		"append behind another position":     answerConflicts,
		"a page is limited":                  answerPages,
		"wait ends with the next record":     answerWait,
		"expired records are gone":           answerExpires,
		"writers take turns":                 answerWriters,
		"removed stream is empty":            answerRemoved,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(answersTest{t, open(t)})
		})
	}
}

type answersTest struct {
	*testing.T
	AnswersHarness
}

func (f answersTest) records(ids ...string) []port.FeedRecord {
	records := make([]port.FeedRecord, len(ids))
	for i, id := range ids {
		records[i] = port.FeedRecord{ID: id, At: f.Now().UTC(), Data: []byte("data of " + id)}
	}
	return records
}

func (f answersTest) add(after int64, ids ...string) {
	f.Helper()
	state := fmt.Sprint("behind ", after)
	h, err := f.Append(f.Context(), "s", port.Batch{After: after, Records: f.records(ids...), State: []byte(state)})
	if err != nil || h.Newest != after+int64(len(ids)) || string(h.State) != state {
		f.Fatalf("got %+v, %v, want the newest position %d", h, err, after+int64(len(ids)))
	}
}

func (f answersTest) want(after int64, limit int, want ...string) {
	f.Helper()
	for name, feed := range map[string]port.AnswerFeed{"writer": f.AnswerFeed, "other": f.Other} {
		found, err := feed.Read(f.Context(), "s", after, limit)
		if err != nil {
			f.Fatal(err)
		}
		var ids []string
		for i, r := range found {
			if ids = append(ids, r.ID); r.Position != found[0].Position+int64(i) || string(r.Data) != "data of "+r.ID {
				f.Errorf("%s: got record %q at %d with %q", name, r.ID, r.Position, r.Data)
			}
		}
		if diff := cmp.Diff(want, ids, cmpopts.EquateEmpty()); diff != "" {
			f.Errorf("%s: records behind %d, want -, got +\n%s", name, after, diff)
		}
	}
}

func (f answersTest) head(oldest, newest int64) {
	f.Helper()
	for name, feed := range map[string]port.AnswerFeed{"writer": f.AnswerFeed, "other": f.Other} {
		if h, err := feed.Head(f.Context(), "s"); err != nil || h.Oldest != oldest || h.Newest != newest {
			f.Errorf("%s: got positions %d to %d, %v, want %d to %d", name, h.Oldest, h.Newest, err, oldest, newest)
		}
	}
}

func emptyAnswer(f answersTest) {
	f.head(0, 0)
	f.want(0, 10)
	f.want(3, 10)
	if found, err := f.Positions(f.Context(), "s", f.records("a")); err != nil || len(found) > 0 {
		f.Errorf("got positions %v, %v, want none", found, err)
	}
}

// answerRemoved removes a stream of several batches, twice, beside another one, and writes to it
// again.
func answerRemoved(f answersTest) {
	remove := func() {
		f.Helper()
		if err := f.Remove(f.Context(), "s"); err != nil {
			f.Fatal(err)
		}
	}
	remove()
	f.add(0, "a", "b", "c")
	f.add(3, "d")
	if _, err := f.Append(f.Context(), "s2", port.Batch{Records: f.records("a")}); err != nil {
		f.Fatal(err)
	}
	remove()
	remove()
	emptyAnswer(f)
	if found, err := f.Read(f.Context(), "s2", 0, 10); err != nil || len(found) != 1 {
		f.Errorf("got %v, %v of another stream, want its record", found, err)
	}
	for _, feed := range []port.AnswerFeed{f.AnswerFeed, f.Other} {
		var lost *port.FeedConflict
		if _, err := feed.Append(f.Context(), "s", port.Batch{After: 4, Records: f.records("e")}); !errors.As(err, &lost) || lost.Newest != 0 {
			f.Errorf("got %v behind the last removed record, want a conflict with an empty stream", err)
		}
	}
	f.add(0, "x")
	f.want(0, 10, "x")
	f.head(1, 1)
	if err := f.Remove(f.Context(), ""); err == nil {
		f.Error("got no error for a stream without a name")
	}
}

func answerFromAnyPosition(f answersTest) {
	f.add(0, "a", "b", "c")
	f.add(3, "d")
	f.add(4, "e", "f")
	f.head(1, 6)
	all := []string{"a", "b", "c", "d", "e", "f"}
	for after := range len(all) + 2 {
		f.want(int64(after), 10, all[min(after, len(all)):]...)
	}
	found, err := f.Other.Positions(f.Context(), "s", f.records("b", "f", "x"))
	if diff := cmp.Diff(map[string]int64{"b": 2, "f": 6}, found); diff != "" || err != nil {
		f.Errorf("positions, want -, got + (%v)\n%s", err, diff)
	}
	if h, err := f.Other.Head(f.Context(), "s"); err != nil || string(h.State) != "behind 4" {
		f.Errorf("got state %q, %v, want that of the last batch", h.State, err)
	}
}

func answerConflicts(f answersTest) {
	conflict := func(feed port.AnswerFeed, after, newest int64) {
		f.Helper()
		_, err := feed.Append(f.Context(), "s", port.Batch{After: after, Records: f.records("x", "y")})
		found, ok := errors.AsType[*port.FeedConflict](err)
		if !ok || found.Newest != newest || !errors.Is(err, port.ErrConflict) {
			f.Errorf("append behind %d: got %v, want a conflict with newest position %d", after, err, newest)
		}
	}
	conflict(f.Other, 3, 0)
	f.add(0, "a", "b", "c")
	for _, after := range []int64{0, 1, 2, 4, 1 << 40} {
		conflict(f.AnswerFeed, after, 3)
		conflict(f.Other, after, 3)
	}
	// The other instance appends after an end that the first one has read.
	if _, err := f.Other.Append(f.Context(), "s", port.Batch{After: 3, Records: f.records("d")}); err != nil {
		f.Fatal(err)
	}
	conflict(f.AnswerFeed, 3, 4)
	f.add(4, "e")
	f.want(0, 10, "a", "b", "c", "d", "e")
}

func answerPages(f answersTest) {
	f.add(0, "a", "b", "c")
	f.add(3, "d", "e", "f")
	f.want(0, 2, "a", "b")
	f.want(2, 2, "c", "d")
	f.want(1, 1, "b")
	f.want(4, 5, "e", "f")
}

func answerWait(f answersTest) {
	f.add(0, "a", "b")
	for after := range int64(2) {
		if err := f.Other.Wait(f.Context(), "s", after); err != nil {
			f.Errorf("behind %d: got %v, want the end of the wait at once", after, err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- f.Other.Wait(f.Context(), "s", 2) }()
	select {
	case err := <-ended:
		f.Fatalf("got %v before a record", err)
	default:
	}
	f.add(2, "c")
	if err := <-ended; err != nil {
		f.Errorf("got %v, want the end of the wait", err)
	}
	ctx, cancel := context.WithCancel(f.Context())
	cancel()
	if err := f.Wait(ctx, "s", 3); !errors.Is(err, context.Canceled) {
		f.Errorf("got %v from a cancelled wait, want %v", err, context.Canceled)
	}
}

func answerExpires(f answersTest) {
	f.add(0, "a", "b")
	f.Advance(f.Retention / 2)
	f.add(2, "c", "d")
	f.Advance(f.Retention/2 + time.Second)
	f.head(3, 4)
	f.want(0, 10, "c", "d")
	f.Advance(f.Retention)
	f.head(5, 4)
	f.want(0, 10)
	f.add(4, "e")
	f.want(0, 10, "e")
}

// answerWriters has two processes append records concurrently. Each position has one record,
// and no successful append is lost.
func answerWriters(f answersTest) {
	const each = 20
	var writers sync.WaitGroup
	for i, feed := range []port.AnswerFeed{f.AnswerFeed, f.Other} {
		writers.Go(func() {
			for n := range each {
				for after := int64(0); ; {
					_, err := feed.Append(f.Context(), "s", port.Batch{After: after, Records: f.records(fmt.Sprint(i, "-", n), fmt.Sprint(i, "+", n))})
					if err == nil {
						break
					}
					lost, ok := errors.AsType[*port.FeedConflict](err)
					if !ok {
						f.Error(err)
						return
					}
					after = lost.Newest
				}
			}
		})
	}
	writers.Wait()
	found, err := f.Read(f.Context(), "s", 0, 1000)
	seen := map[string]bool{}
	for _, r := range found {
		seen[r.ID] = true
	}
	if err != nil || len(found) != 4*each || len(seen) != 4*each || found[len(found)-1].Position != 4*each {
		f.Errorf("got %d records with %d ids, %v, want %d", len(found), len(seen), err, 4*each)
	}
}
