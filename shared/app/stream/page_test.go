package stream_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

func TestPagesFollowEachOther(t *testing.T) {
	t.Parallel()
	b := setup(t, settings)
	b.add(t, 700, eventtype.Queued)
	for _, limit := range []int{1, 7, 256, 300, 1000} {
		q := stream.PageQuery{After: stream.Earliest, Limit: limit}
		var got []int64
		for {
			p, err := b.streams.Page(t.Context(), who, q)
			if err != nil {
				t.Fatal(err)
			}
			if p.Next.String() == q.After {
				break
			}
			if len(p.Events) > limit || len(p.Events) == 0 {
				t.Fatalf("limit %d: got %d events after %s, want 1 to the limit", limit, len(p.Events), q.After)
			}
			got, q.After = append(got, positions(p.Events)...), p.Next.String()
		}
		if !slices.Equal(got, from(1, 700)) {
			t.Errorf("limit %d: got %v, want each position once", limit, got)
		}
	}
	if reads := b.feed.count(); reads > 3 {
		t.Errorf("got %d reads of the feed, want one of each of 3 chunks", reads)
	}
}

func TestPageOfAFilterMovesOn(t *testing.T) {
	t.Parallel()
	b := setup(t, settings)
	b.add(t, 400, eventtype.Queued)
	b.add(t, 2, eventtype.Failed)
	b.add(t, 100, eventtype.Queued)
	for name, row := range map[string]struct {
		filter events.Filter
		limit  int
		want   []int64
		next   int64
	}{
		"type":          {events.Filter{Types: []string{"job.failed"}}, 100, []int64{401, 402}, 502},
		"type, limit 1": {events.Filter{Types: []string{"job.f*"}}, 1, []int64{401}, 401},
		"task":          {events.Filter{TaskID: "job_7"}, 100, []int64{7}, 502},
		"nothing":       {events.Filter{ProjectID: "other"}, 100, nil, 502},
	} {
		p, err := b.streams.Page(t.Context(), who, stream.PageQuery{After: "0", Limit: row.limit, Filter: row.filter})
		if err != nil || !slices.Equal(positions(p.Events), row.want) || p.Next.Position != row.next {
			t.Errorf("%s: got %v, next %d, %v, want %v, next %d", name, positions(p.Events), p.Next.Position, err, row.want, row.next)
		}
	}
}

func TestPageRefusesOtherCursors(t *testing.T) {
	t.Parallel()
	b := setup(t, settings)
	page := func(after string) (stream.Page, error) {
		return b.streams.Page(t.Context(), who, stream.PageQuery{After: after, Limit: 10})
	}
	if p, err := page(stream.Earliest); err != nil || len(p.Events) != 0 || p.Next.String() != "0" {
		t.Fatalf("got %v, next %s, %v, want an empty page of an empty stream", p.Events, p.Next, err)
	}
	b.add(t, 5, eventtype.Queued)
	mine := b.Cursor()
	b.clock.Advance(retention / 2)
	b.add(t, 5, eventtype.Queued)
	b.clock.Advance(retention/2 + time.Second) // the first five expire
	at := func(n int64) string { return stream.Cursor{Epoch: mine.Epoch, Position: n}.String() }
	for after, want := range map[string]fault.Code{
		at(4): fault.CursorExpired, at(11): fault.CursorExpired, "other-7": fault.CursorExpired, at(0): fault.CursorExpired,
		"seven": fault.InvalidRequest, "": fault.InvalidRequest, "-7": fault.InvalidRequest,
		at(5): "", at(10): "", "0": "", stream.Latest: "",
	} {
		p, err := page(after)
		if fault.Of(err) != nil && fault.Of(err).Code != want && want != "" || (err == nil) != (want == "") {
			t.Errorf("%q: got %v, want %q", after, err, want)
		}
		if err == nil && p.Next != b.Cursor() {
			t.Errorf("%q: got the next cursor %s, want %s", after, p.Next, b.Cursor())
		}
	}
	b.feed.Lose(port.EventStream(tenant))
	if _, err := page(at(10)); !fault.Is(err, fault.CursorExpired) {
		t.Errorf("got %v for a lost stream, want the cursor refused", err)
	}
}

func TestTenantsAreSeparate(t *testing.T) {
	t.Parallel()
	b := setup(t, settings)
	b.add(t, 3, eventtype.Queued)
	for _, other := range []string{"tenant-b", "", "tenant-a/", "events/tenant-a"} {
		p, err := b.streams.Page(t.Context(), port.Identity{Tenant: other}, stream.PageQuery{After: "0", Limit: 10})
		if err != nil || len(p.Events) > 0 {
			t.Errorf("tenant %q: got %d events, %v, want none", other, len(p.Events), err)
		}
		if _, err := b.streams.Page(t.Context(), port.Identity{Tenant: other}, stream.PageQuery{After: b.Cursor().String(), Limit: 10}); !fault.Is(err, fault.CursorExpired) {
			t.Errorf("tenant %q: got %v for a cursor of another tenant, want it refused", other, err)
		}
	}
}

// TestSignedPagesProveTheStream: signed pages of any length together prove that the stream is
// complete.
func TestSignedPagesProveTheStream(t *testing.T) {
	t.Parallel()
	b := setup(t, settings)
	for range 9 {
		b.add(t, 13, eventtype.Queued)
	}
	for _, limit := range []int{1, 12, 13, 100} {
		var file bytes.Buffer
		q := stream.PageQuery{After: "0", Limit: limit, Signed: true}
		for {
			p, err := b.streams.Page(t.Context(), who, q)
			if err != nil {
				t.Fatal(err)
			}
			if p.Next.String() == q.After {
				break
			}
			marks := p.Checkpoints
			for _, e := range p.Events {
				for ; len(marks) > 0 && marks[0].Position < e.Position; marks = marks[1:] {
					checkpointLine(&file, marks[0])
				}
				fmt.Fprintf(&file, "%s\n", e.Signed)
			}
			for _, m := range marks {
				checkpointLine(&file, m)
			}
			q.After = p.Next.String()
		}
		want := events.Proof{Origin: events.Origin(tenant, b.Cursor().Epoch), Events: 117, From: 0, To: 117}
		if proof, err := events.Verify(t.Context(), bytes.NewReader(file.Bytes()), b.Keys()); err != nil || proof != want {
			t.Errorf("limit %d: got %+v, %v, want %+v", limit, proof, err, want)
		}
		lines := strings.SplitAfter(file.String(), "\n")
		if _, err := events.Verify(t.Context(), strings.NewReader(strings.Join(slices.Delete(lines, 20, 21), "")), b.Keys()); err == nil {
			t.Errorf("limit %d: got no error without line 21, want one", limit)
		}
	}
	p, err := b.streams.Page(t.Context(), who, stream.PageQuery{After: "0", Limit: 50, Signed: true, Filter: events.Filter{TaskID: "job_1"}})
	if err != nil || len(p.Checkpoints) > 0 || len(p.Events) != 1 {
		t.Errorf("got %d checkpoints, %v, want none with a filter", len(p.Checkpoints), err)
	}
}

func checkpointLine(file *bytes.Buffer, m port.Mark) {
	line, err := json.Marshal(events.CheckpointLine{Checkpoint: string(m.Data)})
	if err != nil {
		panic(err)
	}
	file.Write(append(line, '\n'))
}

// TestPlainFormIsTheSignedEvent: the plain form differs from the signed payload only in its
// delivery.
func TestPlainFormIsTheSignedEvent(t *testing.T) {
	t.Parallel()
	b := setup(t, settings)
	b.add(t, 1, eventtype.Completed)
	p, err := b.streams.Page(t.Context(), who, stream.PageQuery{After: "0", Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := events.Parse(p.Events[0].Plain)
	if err != nil || plain.Notifier.Delivery != events.DeliveryPlain || bytes.ContainsAny(p.Events[0].Plain, "\n\r") {
		t.Errorf("got %s, %v, want an envelope on one line with delivery plain", p.Events[0].Plain, err)
	}
	_, payload, err := b.Keys().Open(t.Context(), p.Events[0].Signed)
	if err != nil {
		t.Fatal(err)
	}
	want, err := events.Canonical(payload)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := events.Canonical(p.Events[0].Plain); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

// TestUnreadableRecordIsPassedOver: a record that is not an event has a position, and is only
// part of exports.
func TestUnreadableRecordIsPassedOver(t *testing.T) {
	t.Parallel()
	b := setup(t, settings)
	b.add(t, 2, eventtype.Queued)
	bad := port.Batch{After: 2, Records: []port.FeedRecord{{ID: "bad", At: epoch, Data: []byte("{}")}}}
	head, err := b.feed.Append(t.Context(), port.EventStream(tenant), bad)
	if err != nil {
		t.Fatal(err)
	}
	p, err := b.streams.Page(t.Context(), who, stream.PageQuery{After: "0", Limit: 10})
	if err != nil || !slices.Equal(positions(p.Events), from(1, 2)) || p.Next.Position != head.Newest {
		t.Errorf("got %v, next %s, %v, want the two events and the place behind the record", positions(p.Events), p.Next, err)
	}
	p, err = b.streams.Page(t.Context(), who, stream.PageQuery{After: "0", Limit: 10, Signed: true})
	if err != nil || len(p.Events) != 3 {
		t.Errorf("got %d signed records, %v, want 3", len(p.Events), err)
	}
	f := b.follow(t, stream.Query{After: "0"})
	f.next(t)
	if got := f.next(t); !slices.Equal(positions(got.Events), from(1, 2)) || got.Cursor.Position != 3 {
		t.Errorf("got %v behind %s, want the two events and the place behind the record", positions(got.Events), got.Cursor)
	}
}

// TestPageSignsBareEvents reads events that are stored without DSSE envelopes. Only the signed
// form has signatures, and they must match the checkpoints. Without a key the signed form must
// be refused.
func TestPageSignsBareEvents(t *testing.T) {
	t.Parallel()
	b := setup(t, settings)
	b.Bare = true
	b.add(t, 5, eventtype.Completed)
	if _, err := b.streams.Page(t.Context(), who, stream.PageQuery{After: "0", Limit: 50, Signed: true}); !fault.Is(err, fault.Internal) {
		t.Errorf("got %v without a key, want an Internal fault", err)
	}
	own := settings
	own.Keys = b.Writer
	streams := stream.New(b.feed, b.clock, slog.New(slog.DiscardHandler), rand.Float64, own)
	for range 2 {
		p, err := streams.Page(t.Context(), who, stream.PageQuery{After: "0", Limit: 50, Signed: true})
		if err != nil || len(p.Events) != 5 || len(p.Checkpoints) == 0 {
			t.Fatalf("got %d events and %d checkpoints, %v", len(p.Events), len(p.Checkpoints), err)
		}
		var file bytes.Buffer
		for _, e := range p.Events {
			fmt.Fprintf(&file, "%s\n", e.Signed)
		}
		checkpointLine(&file, p.Checkpoints[len(p.Checkpoints)-1])
		if proof, err := events.Verify(t.Context(), &file, b.Keys()); err != nil || proof.To != 5 || proof.From != 0 {
			t.Errorf("got %+v, %v, want a proof of 5 events", proof, err)
		}
		p, err = streams.Page(t.Context(), who, stream.PageQuery{After: "0", Limit: 50})
		if err != nil || len(p.Events) != 5 || len(p.Events[0].Signed) > 0 || len(p.Events[0].Plain) == 0 {
			t.Errorf("got %d events, %v, want 5 without signatures", len(p.Events), err)
		}
	}
}
