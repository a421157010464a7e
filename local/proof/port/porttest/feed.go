package porttest

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// FeedHarness is an adapter of port.Feed without streams.
type FeedHarness struct {
	port.Feed
	// Other is another instance with the same streams, like one in another process.
	Other port.Feed
	// Retention is the retention of the streams, at least an hour.
	Retention time.Duration
	// Now returns the time of the adapter's clock. Advance advances the clock.
	Now     func() time.Time
	Advance func(d time.Duration)
	// Lose removes a stream from the storage, as the restore of an older database does.
	Lose func(stream string)
	// CatchUp waits until Streams and Due are up to date. It is nil if they always are.
	CatchUp func()
}

// Feed is the conformance suite of port.Feed.
func Feed(t *testing.T, open func(t *testing.T) FeedHarness) {
	t.Helper()
	for name, test := range map[string]func(feedTest){
		"empty stream":                              emptyStream,
		"records are read back":                     recordsAreReadBack,
		"positions have no gaps":                    positionsHaveNoGaps,
		"append behind another position conflicts":  appendConflicts,
		"positions of known ids":                    positionsOfIDs,
		"positions of ids of another writer":        positionsOfAnotherWriter,
		"read in pages":                             readInPages,
		"page is limited in bytes":                  pageOfBytes,
		"batch above a limit is refused":            batchLimits,
		"largest batches":                           largestBatches,
		"invalid names are refused":                 invalidNames,
		"marks are kept at their positions":         marksAreKept,
		"state is that of the last batch":           stateOfTheLastBatch,
		"wait ends with the next record":            waitEnds,
		"cursors are moved from where they are":     cursorsMove,
		"streams are listed by prefix":              streamsByPrefix,
		"streams are due from a batch to their end": dueStreams,
		"due streams are listed in pages":           dueStreamsInPages,
		"streams are isolated":                      streamsAreIsolated,
		"expired records are gone":                  expiredRecords,
		"records expire one after another":          expireOneByOne,
		"stream continues after its records expire": continuesAfterExpiry,
		"trim leaves what has not expired":          trimLeavesTheRest,
		"lost stream has another epoch":             lostStream,
		"many writers store each record once":       func(f feedTest) { FeedWriters(f.T, f.Feed, f.Other, f.Now) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(feedTest{t, open(t)})
		})
	}
}

// feedTest is a test with its feed.
type feedTest struct {
	*testing.T
	FeedHarness
}

func (f feedTest) ok(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// wholeBytes compares byte slices without a diff, because a diff of large ones takes seconds.
var wholeBytes = cmp.FilterValues(func(a, b []byte) bool { return len(a)+len(b) > 0 }, cmp.Comparer(bytes.Equal))

// same compares values. An empty list is equal to nil.
func (f feedTest) same(what string, got, want any) {
	f.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), wholeBytes); diff != "" {
		f.Fatalf("%s: want -, got +\n%s", what, diff)
	}
}

// records returns new records with the IDs.
func (f feedTest) records(ids ...string) []port.FeedRecord {
	records := make([]port.FeedRecord, len(ids))
	for i, id := range ids {
		records[i] = port.FeedRecord{ID: id, At: f.Now().UTC(), Data: fmt.Appendf(nil, `{"id":%q}`, id)}
	}
	return records
}

// append appends a batch after the newest record and returns the new head.
func (f feedTest) append(stream string, b port.Batch) port.Head {
	f.Helper()
	before, err := f.Head(f.Context(), stream)
	f.ok(err)
	b.After = before.Newest
	after, err := f.Append(f.Context(), stream, b)
	f.ok(err)
	if want := before.Newest + int64(len(b.Records)); after.Newest != want {
		f.Fatalf("%s: got newest position %d after an append, want %d", stream, after.Newest, want)
	}
	f.wantHead(stream, after)
	return after
}

// add appends records with the IDs.
func (f feedTest) add(stream string, ids ...string) port.Head {
	f.Helper()
	return f.append(stream, port.Batch{Records: f.records(ids...)})
}

func (f feedTest) wantHead(stream string, want port.Head) {
	f.Helper()
	got, err := f.Head(f.Context(), stream)
	f.ok(err)
	f.same("head of "+stream, got, want)
	got, err = f.Other.Head(f.Context(), stream)
	f.ok(err)
	f.same("head of "+stream+" by another instance", got, want)
}

// ids reads the IDs of the records after a position. It checks that their positions start at
// first and have no gaps.
func (f feedTest) ids(stream string, after, first int64) (ids []string) {
	f.Helper()
	for {
		page, err := f.Read(f.Context(), stream, after, 100)
		f.ok(err)
		if len(page) == 0 {
			return ids
		}
		for _, r := range page {
			if r.Position != first {
				f.Fatalf("%s: got position %d, want %d", stream, r.Position, first)
			}
			ids, after, first = append(ids, r.ID), r.Position, first+1
		}
	}
}

func (f feedTest) positions(stream string, ids ...string) map[string]int64 {
	f.Helper()
	found, err := f.Positions(f.Context(), stream, f.records(ids...))
	f.ok(err)
	return found
}

var epochs = regexp.MustCompile(`^[a-z0-9]{1,32}$`)

func emptyStream(f feedTest) {
	ctx := f.Context()
	f.wantHead("s", port.Head{})
	if ids := f.ids("s", 0, 1); len(ids) > 0 {
		f.Errorf("got records %v, want none", ids)
	}
	marks, err := f.Marks(ctx, "s", 0, 10)
	if err != nil || len(marks) > 0 {
		f.Errorf("got marks %v, %v, want none", marks, err)
	}
	if found := f.positions("s", "a"); len(found) > 0 {
		f.Errorf("got positions %v, want none", found)
	}
	if n, err := f.Trim(ctx, "s", 10); n != 0 || err != nil {
		f.Errorf("got %d trimmed, %v, want 0", n, err)
	}
	if at, err := f.Cursor(ctx, "s", "c"); at != 0 || err != nil {
		f.Errorf("got cursor %d, %v, want 0", at, err)
	}
	if streams, next, err := f.Streams(ctx, "", "", 10); len(streams) > 0 || next != "" || err != nil {
		f.Errorf("got streams %v, next %q, %v, want none", streams, next, err)
	}
}

func positionsHaveNoGaps(f feedTest) {
	var want []string
	head := port.Head{}
	for i := range 12 {
		var ids []string
		for j := range i % 4 {
			ids = append(ids, fmt.Sprint(i, "-", j))
		}
		before := head
		head = f.add("s", ids...)
		if !epochs.MatchString(head.Epoch) || before.Epoch != "" && before.Epoch != head.Epoch {
			f.Fatalf("got epoch %q after %q, want one of [a-z0-9] that stays", head.Epoch, before.Epoch)
		}
		if len(want)+len(ids) > 0 && head.Oldest != 1 {
			f.Fatalf("got oldest position %d, want 1", head.Oldest)
		}
		want = append(want, ids...)
	}
	f.same("records", f.ids("s", 0, 1), want)
}

func appendConflicts(f feedTest) {
	ctx := f.Context()
	conflict := func(after, newest int64) {
		f.Helper()
		_, err := f.Other.Append(ctx, "s", port.Batch{After: after, Records: f.records("x", "y"), State: []byte("lost"), Mark: []byte("lost")})
		found, ok := errors.AsType[*port.FeedConflict](err)
		if !ok || found.Newest != newest || !errors.Is(err, port.ErrConflict) {
			f.Errorf("append behind %d: got %v, want a conflict with newest position %d", after, err, newest)
		}
	}
	conflict(3, 0)
	f.wantHead("s", port.Head{})
	want := f.append("s", port.Batch{Records: f.records("a", "b", "c"), State: []byte("state")})
	for _, after := range []int64{0, 1, 2, 4, 1 << 40} {
		conflict(after, 3)
	}
	f.wantHead("s", want)
	f.same("records", f.ids("s", 0, 1), []string{"a", "b", "c"})
	if found := f.positions("s", "x", "y"); len(found) > 0 {
		f.Errorf("got positions %v of refused records, want none", found)
	}
	if marks, err := f.Marks(ctx, "s", 0, 10); len(marks) > 0 || err != nil {
		f.Errorf("got marks %v of refused batches, %v, want none", marks, err)
	}
	if _, err := f.Append(ctx, "s", port.Batch{After: 2, State: []byte("lost")}); !errors.Is(err, port.ErrConflict) {
		f.Errorf("append of a state behind 2: got %v, want ErrConflict", err)
	}
	f.wantHead("s", want)
}

func lostStream(f feedTest) {
	first := f.add("s", "a", "b", "c")
	other := f.add("kept", "a")
	f.same("positions", f.positions("s", "a", "b", "c"), map[string]int64{"a": 1, "b": 2, "c": 3})
	f.Lose("s")
	// Another writer starts the stream again before this writer reads it.
	again, err := f.Other.Append(f.Context(), "s", port.Batch{Records: f.records("b", "d", "e", "f")})
	f.ok(err)
	f.same("positions", f.positions("s", "a", "b", "c", "f"), map[string]int64{"b": 1, "f": 4})
	f.wantHead("s", again)
	if again.Epoch == first.Epoch || !epochs.MatchString(again.Epoch) {
		f.Errorf("got epoch %q after a loss of %q, want another", again.Epoch, first.Epoch)
	}
	f.Lose("s")
	f.wantHead("s", port.Head{})
	if found := f.positions("s", "a", "b", "c"); len(found) > 0 {
		f.Errorf("got positions %v in a lost stream, want none", found)
	}
	if third := f.add("s", "b"); third.Newest != 1 || third.Epoch == first.Epoch || third.Epoch == again.Epoch {
		f.Errorf("got head %+v after a loss of %q and %q, want position 1 in another epoch", third, first.Epoch, again.Epoch)
	}
	f.same("positions", f.positions("s", "a", "b", "c", "f"), map[string]int64{"b": 1})
	f.wantHead("kept", other)
}

func invalidNames(f feedTest) {
	ctx := f.Context()
	long := fmt.Sprintf("%0*d", port.MaxFeedName+1, 1)
	for _, name := range []string{"", long, "\xff"} {
		_, head := f.Head(ctx, name)
		_, appended := f.Append(ctx, name, port.Batch{Records: f.records("a")})
		_, positions := f.Positions(ctx, name, f.records("a"))
		_, read := f.Read(ctx, name, 0, 1)
		_, marks := f.Marks(ctx, name, 0, 1)
		_, trimmed := f.Trim(ctx, name, 1)
		_, cursor := f.Cursor(ctx, name, "c")
		_, consumer := f.Cursor(ctx, "s", name)
		for call, err := range map[string]error{
			"Head": head, "Append": appended, "Positions": positions, "Read": read, "Marks": marks, "Trim": trimmed,
			"Cursor": cursor, "Cursor of a consumer": consumer, "Wait": f.Wait(ctx, name, 0),
			"MoveCursor": f.MoveCursor(ctx, name, "c", 0, 1), "MoveCursor of a consumer": f.MoveCursor(ctx, "s", name, 0, 1),
		} {
			if !fault.Is(err, fault.Internal) {
				f.Errorf("%s with a name of %d bytes: got %v, want an Internal fault", call, len(name), err)
			}
		}
	}
}
