package porttest

import (
	"errors"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// wantDue checks which streams of a group are due after a duration.
func (f feedTest) wantDue(group string, after time.Duration, want ...string) {
	f.Helper()
	if f.CatchUp != nil {
		f.CatchUp()
	}
	for _, feed := range []port.Feed{f.Feed, f.Other} {
		got, next, err := feed.Due(f.Context(), group, f.Now().Add(after), "", 10)
		f.ok(err)
		f.same("due streams of "+group, got, want)
		f.same("next", next, "")
	}
}

func (f feedTest) due(stream string, in time.Duration) port.Head {
	f.Helper()
	head, err := f.Head(f.Context(), stream)
	f.ok(err)
	return f.append(stream, port.Batch{Records: f.records(fmt.Sprint("due ", head.Newest)), DueAt: f.Now().Add(in)})
}

func dueStreams(f feedTest) {
	ctx := f.Context()
	f.add("g/never", "a")
	f.due("g/b", time.Minute)
	f.due("g/a", 2*time.Minute)
	f.due("other/a", time.Minute)
	f.wantDue("g/", 0)
	f.wantDue("g/", time.Minute+time.Second, "g/b")
	f.wantDue("g/", 3*time.Minute, "g/b", "g/a")
	f.wantDue("other/", 3*time.Minute, "other/a")
	f.wantDue("none/", 3*time.Minute)
	// Another batch changes neither the due time nor that the stream is due.
	f.due("g/b", time.Hour/2)
	head := f.add("g/b", "c")
	f.wantDue("g/", time.Minute+time.Second, "g/b")
	// Only Settle with the newest position ends it.
	if err := f.Other.Settle(ctx, "g/b", head.Newest-1); !errors.Is(err, port.ErrConflict) {
		f.Errorf("settled at an old position: got %v, want ErrConflict", err)
	}
	f.wantDue("g/", 3*time.Minute, "g/b", "g/a")
	f.ok(f.Other.Settle(ctx, "g/b", head.Newest))
	f.ok(f.Other.Settle(ctx, "g/b", head.Newest))
	f.wantDue("g/", 3*time.Minute, "g/a")
	f.wantHead("g/b", head)
	// An append makes the stream due again if its process has not seen that it was settled.
	f.due("g/b", time.Minute)
	f.wantDue("g/", 3*time.Minute, "g/b", "g/a")
	f.ok(f.SetDue(ctx, "g/b", f.Now().Add(5*time.Minute)))
	f.wantDue("g/", 3*time.Minute, "g/a")
	f.wantDue("g/", 6*time.Minute, "g/a", "g/b")
	f.ok(f.SetDue(ctx, "g/never", f.Now().Add(-time.Minute)))
	f.ok(f.SetDue(ctx, "g/empty", f.Now()))
	f.ok(f.Feed.Settle(ctx, "g/empty", 0))
	f.wantDue("g/", time.Second, "g/never")
	for _, group := range []string{"", "g", "g/a/", "/g"} {
		if _, _, err := f.Due(ctx, group, f.Now(), "", 10); !fault.Is(err, fault.Internal) {
			f.Errorf("Due of the group %q: got %v, want an Internal fault", group, err)
		}
	}
}

func dueStreamsInPages(f feedTest) {
	var want []string
	for i := range 23 {
		stream := fmt.Sprintf("g/%02d", 99-i)
		f.due(stream, time.Duration(i)*time.Second)
		want = append(want, stream)
	}
	if f.CatchUp != nil {
		f.CatchUp()
	}
	var got []string
	for after := ""; ; {
		page, next, err := f.Due(f.Context(), "g/", f.Now().Add(time.Minute), after, 5)
		f.ok(err)
		if len(page) > 5 {
			f.Fatalf("got a page of %d streams, want at most 5", len(page))
		}
		got = append(got, page...)
		// Settling streams between pages does not move the other streams.
		for _, stream := range page[:min(len(page), 2)] {
			f.ok(f.Feed.Settle(f.Context(), stream, 1))
		}
		if after = next; next == "" {
			break
		}
	}
	f.same("due streams", got, want)
}
