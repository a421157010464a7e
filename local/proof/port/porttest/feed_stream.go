package porttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/port"
)

func marksAreKept(f feedTest) {
	f.append("s", port.Batch{Records: f.records("a", "b"), Mark: []byte("at 2")})
	f.add("s", "c")
	f.append("s", port.Batch{Mark: []byte("first at 3")})
	f.append("s", port.Batch{Mark: noise(port.MaxFeedMark)})
	f.append("s", port.Batch{Records: f.records("d"), Mark: []byte{}})
	want := []port.Mark{{Position: 2, Data: []byte("at 2")}, {Position: 3, Data: noise(port.MaxFeedMark)}, {Position: 4}}
	for _, test := range []struct {
		after int64
		limit int
		want  []port.Mark
	}{{0, 10, want}, {-1, 3, want}, {0, 2, want[:2]}, {2, 10, want[1:]}, {3, 1, want[2:]}, {4, 10, nil}, {0, 0, nil}} {
		got, err := f.Other.Marks(f.Context(), "s", test.after, test.limit)
		f.ok(err)
		f.same(fmt.Sprintf("marks behind %d with limit %d", test.after, test.limit), got, test.want)
	}
	f.same("records", f.ids("s", 0, 1), []string{"a", "b", "c", "d"})
}

func stateOfTheLastBatch(f feedTest) {
	for _, b := range []port.Batch{
		{Records: f.records("a"), State: []byte("one")},
		{State: []byte("\x00\xff two")},
		{Records: f.records("b", "c")},
		{State: noise(port.MaxFeedState)},
	} {
		if head := f.append("s", b); string(head.State) != string(b.State) {
			f.Errorf("got state %q, want %q", head.State, b.State)
		}
	}
	// A batch can store a state before the first record.
	if head := f.append("new", port.Batch{State: []byte("s")}); head.Newest != 0 || head.Oldest != 0 || head.Epoch == "" {
		f.Errorf("got head %+v, want an epoch and no position", head)
	}
	f.add("new", "a")
}

func waitEnds(f feedTest) {
	wait := func(feed port.Feed, after int64) <-chan error {
		ended := make(chan error, 1)
		go func() { ended <- feed.Wait(f.Context(), "s", after) }()
		return ended
	}
	one, same, other, beyond := wait(f.Feed, 0), wait(f.Feed, 0), wait(f.Other, 0), wait(f.Feed, 2)
	f.add("another", "a")
	f.add("s") // without a record
	for name, waiting := range map[string]<-chan error{"first": one, "second": same, "another instance": other, "beyond": beyond} {
		select {
		case err := <-waiting:
			f.Fatalf("%s: got the end of a wait before a record, %v", name, err)
		default:
		}
	}
	f.add("s", "a")
	for _, waiting := range []<-chan error{one, same, other} {
		f.ok(<-waiting)
	}
	f.add("s", "b")
	f.add("s", "c", "d")
	f.ok(<-beyond)
	f.ok(f.Wait(f.Context(), "s", 3))
	f.ok(f.Other.Wait(f.Context(), "s", -1))

	ctx, cancel := context.WithCancel(f.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Wait(ctx, "s", 4) }()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		f.Errorf("got %v from a cancelled wait, want %v", err, context.Canceled)
	}
}

func cursorsMove(f feedTest) {
	ctx := f.Context()
	want := func(stream, consumer string, want int64) {
		f.Helper()
		for _, feed := range []port.Feed{f.Feed, f.Other} {
			if got, err := feed.Cursor(ctx, stream, consumer); got != want || err != nil {
				f.Errorf("%s of %s: got cursor %d, %v, want %d", consumer, stream, got, err, want)
			}
		}
	}
	f.ok(f.MoveCursor(ctx, "s", "bus", 0, 3))
	f.ok(f.Other.MoveCursor(ctx, "s", "webhook/1", 0, 5))
	f.ok(f.MoveCursor(ctx, "other", "bus", 0, 7))
	for _, from := range []int64{0, 2, 4, 7} {
		if err := f.Other.MoveCursor(ctx, "s", "bus", from, 9); !errors.Is(err, port.ErrConflict) {
			f.Errorf("move from %d: got %v, want ErrConflict", from, err)
		}
	}
	if err := f.MoveCursor(ctx, "s", "new", 1, 2); !errors.Is(err, port.ErrConflict) {
		f.Errorf("move of a new consumer from 1: got %v, want ErrConflict", err)
	}
	f.ok(f.Other.MoveCursor(ctx, "s", "bus", 3, 1<<40))
	f.ok(f.MoveCursor(ctx, "s", "webhook/1", 5, 2))
	f.ok(f.MoveCursor(ctx, "s", "webhook/1", 2, 2))
	want("s", "bus", 1<<40)
	want("s", "webhook/1", 2)
	want("other", "bus", 7)
	want("s", "new", 0)
	f.ok(f.MoveCursor(ctx, "s", "bus", 1<<40, 0))
	f.ok(f.MoveCursor(ctx, "s", "bus", 0, 0))
	want("s", "bus", 0)
	f.ok(f.MoveCursor(ctx, "s", "bus", 0, 1))
	want("s", "bus", 1)
	f.add("s", "a")
	want("s", "bus", 1)
}

// oddStreams returns names that an adapter could confuse with each other.
func oddStreams() []string {
	return []string{
		"events/a", "events/a/", "events/a/b", "events/ab", "events/A", "events/a#head", "events/a#b", "events/a%23b", "events/a b", "events/a\n",
		"events/a*", "events/a?", "events/a_", "events/a%", "events/é", "events/🐎", "events/\U0010ffff", "#", "'", `"`,
		strings.Repeat("x", port.MaxFeedName-1) + "1", strings.Repeat("x", port.MaxFeedName-1) + "2",
	}
}

func streamsAreIsolated(f feedTest) {
	ctx := f.Context()
	for i, stream := range oddStreams() {
		f.append(stream, port.Batch{Records: f.records("same", "of "+stream[:min(len(stream), 100)]), State: fmt.Appendf(nil, "state %d", i), Mark: fmt.Appendf(nil, "mark %d", i)})
		f.ok(f.MoveCursor(ctx, stream, stream, 0, int64(i+1)))
	}
	for i, stream := range oddStreams() {
		own := "of " + stream[:min(len(stream), 100)]
		f.same("records of "+stream, f.ids(stream, 0, 1), []string{"same", own})
		f.same("positions in "+stream, f.positions(stream, "same", own, "of "+oddStreams()[(i+1)%20]), map[string]int64{"same": 1, own: 2})
		marks, err := f.Marks(ctx, stream, 0, 10)
		f.ok(err)
		f.same("marks of "+stream, marks, []port.Mark{{Position: 2, Data: fmt.Appendf(nil, "mark %d", i)}})
		head, err := f.Head(ctx, stream)
		f.ok(err)
		f.same("state of "+stream, string(head.State), fmt.Sprintf("state %d", i))
		for n, consumer := range oddStreams() {
			want := int64(0)
			if n == i {
				want = int64(i + 1)
			}
			if got, err := f.Cursor(ctx, stream, consumer); got != want || err != nil {
				f.Errorf("%q of %q: got cursor %d, %v, want %d", consumer, stream, got, err, want)
			}
		}
	}
}

func streamsByPrefix(f feedTest) {
	names := oddStreams()
	for i := range 30 {
		names = append(names, fmt.Sprintf("tokens/%02d", i))
	}
	for _, stream := range names {
		f.add(stream, "a")
		f.add(stream, "b")
	}
	f.ok(f.MoveCursor(f.Context(), "events/only a cursor", "c", 0, 1))
	slices.Sort(names)
	if f.CatchUp != nil {
		f.CatchUp()
	}
	for _, prefix := range []string{"", "events/", "events/a", "events/a%", "tokens/", "tokens/1", "x", "é", "events/\U0010ffff"} {
		want := slices.DeleteFunc(slices.Clone(names), func(s string) bool { return !strings.HasPrefix(s, prefix) })
		for _, limit := range []int{1, 7, 100} {
			var got []string
			for after := ""; ; {
				page, next, err := f.Streams(f.Context(), prefix, after, limit)
				f.ok(err)
				if len(page) > limit {
					f.Fatalf("got %d streams, want at most %d", len(page), limit)
				}
				got = append(got, page...)
				if after = next; after == "" {
					break
				}
			}
			f.same(fmt.Sprintf("streams with %q in pages of %d", prefix, limit), got, want)
		}
	}
}

// trim calls Trim until nothing is left and returns the number of calls.
func (f feedTest) trim(stream string, limit int) (calls int) {
	f.Helper()
	for {
		n, err := f.Trim(f.Context(), stream, limit)
		f.ok(err)
		if n > limit {
			f.Fatalf("got %d trimmed, want at most %d", n, limit)
		}
		if calls++; n == 0 {
			return calls
		}
	}
}

// expiring appends a and b, each with a mark, and c and d half a retention later with another
// mark. Then it advances the clock until a and b have expired.
func (f feedTest) expiring() (head port.Head) {
	f.Helper()
	f.append("s", port.Batch{Records: f.records("a"), Mark: []byte("a")})
	f.append("s", port.Batch{Records: f.records("b"), Mark: []byte("b")})
	f.Advance(f.Retention / 2)
	head = f.append("s", port.Batch{Records: f.records("c", "d"), Mark: []byte("c")})
	f.Advance(f.Retention/2 - time.Minute)
	f.wantHead("s", head)
	f.same("records", f.ids("s", 0, 1), []string{"a", "b", "c", "d"})
	f.Advance(2 * time.Minute)
	head.Oldest = 3
	return head
}

func (f feedTest) wantPositions(want map[string]int64) {
	f.Helper()
	records := f.records("a", "b", "c", "d", "e")
	for i := range records {
		records[i].At = records[i].At.Add(-2 * f.Retention)
	}
	for _, feed := range []port.Feed{f.Feed, f.Other} {
		got, err := feed.Positions(f.Context(), "s", records)
		f.ok(err)
		f.same("positions", got, want)
	}
}

func (f feedTest) wantMarks(want ...int64) {
	f.Helper()
	marks, err := f.Marks(f.Context(), "s", 0, 100)
	f.ok(err)
	var got []int64
	for _, m := range marks {
		got = append(got, m.Position)
	}
	f.same("positions of marks", got, want)
}

func expiredRecords(f feedTest) {
	head := f.expiring()
	for range 2 { // before and after their deletion
		f.wantHead("s", head)
		f.same("records", f.ids("s", 0, 3), []string{"c", "d"})
		f.same("records behind an expired one", f.ids("s", 1, 3), []string{"c", "d"})
		f.wantPositions(map[string]int64{"c": 3, "d": 4})
		f.wantMarks(4)
		f.trim("s", 1)
	}
	f.Advance(f.Retention / 2)
	head.Oldest = 5
	for range 2 {
		f.wantHead("s", head)
		f.same("records", f.ids("s", 0, 5), []string(nil))
		f.wantPositions(map[string]int64{})
		f.wantMarks()
		f.ok(f.Wait(f.Context(), "s", 3))
		f.trim("s", 100)
	}
	f.wantHead("empty", port.Head{})
}

// expireOneByOne appends records faster than they expire, then more slowly, and then not at
// all.
func expireOneByOne(f feedTest) {
	step := f.Retention / 40
	var ids []string
	var expires []time.Time
	for i := range 130 {
		if id := fmt.Sprint("id-", i); i < 90 {
			ids, expires = append(ids, id), append(expires, f.Now().Add(f.Retention))
			f.append("s", port.Batch{Records: f.records(id), Mark: []byte(id)})
		}
		f.Advance(step)
		if i%7 == 0 {
			f.Advance(step / 2)
		}
		if i%3 > 0 && i < 85 {
			continue // read it only in some steps
		}
		gone := expired(expires, f.Now())
		if expired(expires, f.Now().Add(step/10)) != gone {
			continue // with the host's clock, a record could expire during the read
		}
		for _, feed := range []port.Feed{f.Feed, f.Other} {
			head, err := feed.Head(f.Context(), "s")
			f.ok(err)
			if want := int64(gone + 1); head.Oldest != want || head.Newest != int64(len(ids)) {
				f.Fatalf("step %d: got positions %d to %d, want %d to %d", i, head.Oldest, head.Newest, want, len(ids))
			}
		}
		f.same(fmt.Sprint("records of step ", i), f.ids("s", 0, int64(gone+1)), ids[gone:])
		if i%10 == 0 {
			_, err := f.Trim(f.Context(), "s", 7)
			f.ok(err)
		}
	}
}

// expired returns the number of times that are not after now.
func expired(times []time.Time, now time.Time) (n int) {
	for n < len(times) && !times[n].After(now) {
		n++
	}
	return n
}

func continuesAfterExpiry(f feedTest) {
	for _, trim := range []bool{false, true} {
		first := f.add("s", "a", "b")
		f.ok(f.MoveCursor(f.Context(), "s", "c", first.Newest-2, first.Newest))
		f.Advance(f.Retention + time.Minute)
		if trim {
			f.trim("s", 10)
		}
		// A record that has expired is a new record when it is appended again.
		if found := f.positions("s", "a"); len(found) > 0 {
			f.Fatalf("got positions %v of expired records, want none", found)
		}
		if _, err := f.Append(f.Context(), "s", port.Batch{Records: f.records("x")}); !errors.Is(err, port.ErrConflict) {
			f.Errorf("append behind 0: got %v, want ErrConflict", err)
		}
		head := f.append("s", port.Batch{Records: f.records("a"), Mark: []byte("m")})
		if head.Epoch != first.Epoch || head.Oldest != first.Newest+1 || head.Newest != first.Newest+1 {
			f.Errorf("got head %+v after %+v, want the next position to be the only one", head, first)
		}
		f.same("positions", f.positions("s", "a", "b"), map[string]int64{"a": head.Newest})
		f.wantMarks(head.Newest)
		f.ok(f.MoveCursor(f.Context(), "s", "c", first.Newest, head.Newest))
		f.Advance(f.Retention + time.Minute)
	}
}

func trimLeavesTheRest(f feedTest) {
	f.trim("s", 10)
	before := f.append("s", port.Batch{Records: f.records("a", "b"), Mark: []byte("m"), State: []byte("s")})
	f.trim("s", 10)
	f.wantHead("s", before)
	f.same("records", f.ids("s", 0, 1), []string{"a", "b"})
	f.add("other", "a", "b")
	f.Advance(f.Retention + time.Minute)
	f.trim("s", 1)
	f.add("other", "c")
	f.same("records of another stream", f.ids("other", 0, 3), []string{"c"})
	if n, err := f.Trim(f.Context(), "other", 0); n != 0 || err != nil {
		f.Errorf("got %d trimmed, %v, want 0 with limit 0", n, err)
	}
}
