package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

func TestOutbox(t *testing.T) {
	t.Parallel()
	porttest.Outbox(t, func(t *testing.T) (port.Outbox, func()) {
		store, _, _ := setupStore(t, filepath.Join(t.TempDir(), "sortie.db"))
		return store, nil
	})
}

// changes returns the decoded changes of the outbox with their ids.
func changes(t *testing.T, store *sqlite.Store) (decoded []port.Change, ids []string) {
	t.Helper()
	stored, next, err := store.Stored(t.Context(), "", 100)
	if err != nil || next != "" {
		t.Fatalf("got next %q, %v, want the whole outbox", next, err)
	}
	for _, each := range stored {
		c, err := sqlite.ChangeOf(each.Record)
		if err != nil {
			t.Fatal(err)
		}
		decoded, ids = append(decoded, c), append(ids, each.ID)
	}
	return decoded, ids
}

// TestEachCommitWithEventsIsAChange also checks that a refused commit and a commit without
// an event are not changes. Rule 1 of shared/README.md.
func TestEachCommitWithEventsIsAChange(t *testing.T) {
	t.Parallel()
	store, _, _ := setupStore(t, filepath.Join(t.TempDir(), "sortie.db"))
	created := newRun("a")
	if _, err := store.Create(t.Context(), created, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Create(t.Context(), created, nil); !errors.Is(err, port.ErrConflict) {
		t.Errorf("second creation: got %v, want ErrConflict", err)
	}
	created.Run.Version = 1
	want := []port.Change{{Run: created.Run, Events: created.Events}}
	commit := func(f run.Fact) {
		t.Helper()
		r, err := store.Load(t.Context(), created.Run.Ref())
		if err != nil {
			t.Fatal(err)
		}
		d, err := run.Decide(r, f, newYear.Add(time.Minute))
		if err != nil || !d.Changed {
			t.Fatalf("got changed %v, %v, want a change", d.Changed, err)
		}
		if err := store.Commit(t.Context(), port.WriteOf(d)); err != nil {
			t.Fatal(err)
		}
		if err := store.Commit(t.Context(), port.WriteOf(d)); !errors.Is(err, port.ErrConflict) {
			t.Errorf("repeated commit: got %v, want ErrConflict", err)
		}
		if d.Run.Version++; len(d.Events) > 0 {
			want = append(want, port.Change{Run: d.Run, Events: d.Events})
		}
	}
	commit(run.Admitted{Pool: "p", Limit: 1})
	commit(run.TokenStored{Step: run.StepContainerCreating, Generation: 1, Token: "token"})
	commit(run.CancelRequested{})
	if len(want) != 3 {
		t.Fatalf("got %d commits with events, want 3", len(want))
	}
	got, ids := changes(t, store)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(fault.Fault{})); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
	if err := store.Published(t.Context(), ids[:2]...); err != nil {
		t.Fatal(err)
	}
	if got, _ := changes(t, store); len(got) != 1 || got[0].Run.Version != want[2].Run.Version {
		t.Errorf("got changes %v after two were published, want the third", got)
	}
}

func TestNotes(t *testing.T) {
	t.Parallel()
	store, _, _ := setupStore(t, filepath.Join(t.TempDir(), "sortie.db"))
	porttest.Notes(t, store, func() (notes []port.Note) {
		all, _ := changes(t, store)
		for _, c := range all {
			notes = append(notes, c.Notes...)
		}
		return notes
	})
}

func TestWaitEndsWithTheNextChange(t *testing.T) {
	t.Parallel()
	store, _, _ := setupStore(t, filepath.Join(t.TempDir(), "sortie.db"))
	ended := make(chan error)
	wait := func(ctx context.Context, after string) { go func() { ended <- store.Wait(ctx, after) }() }
	for i, next := range []func(){
		func() { create(t, store, "a") },
		func() { advance(t, store, "a", run.CancelRequested{}) },
		func() {
			if err := store.AddNotes(t.Context(), port.Note{ID: "n", Document: []byte("{}")}); err != nil {
				t.Error(err)
			}
		},
	} {
		_, ids := changes(t, store)
		after := ""
		if len(ids) > 0 {
			after = ids[len(ids)-1]
		}
		if i == 2 { // a reader continues after the events that it has published
			if err := store.Published(t.Context(), ids...); err != nil {
				t.Fatal(err)
			}
		}
		wait(t.Context(), after)
		select {
		case err := <-ended:
			t.Fatalf("got the end of a wait behind %q before a change, %v", after, err)
		default:
		}
		next()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		wait(t.Context(), after) // at once
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, ids := changes(t, store)
	wait(ctx, ids[0])
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v from a cancelled wait, want %v", err, context.Canceled)
	}
}

// TestChangesLeaveWithAnAppend appends to a feed of the same database and removes changes in
// one commit. An append that fails leaves them, and so does a change that is not stored.
func TestChangesLeaveWithAnAppend(t *testing.T) {
	t.Parallel()
	store, db, now := setupStore(t, filepath.Join(t.TempDir(), "sortie.db"))
	feed := newFeed(t, db, now)
	for _, id := range []string{"#1", "#2", "x", "#4", "#5"} {
		if err := store.SetAside(t.Context(), port.StoredChange{ID: id, At: newYear, Record: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		after   int64
		remove  []string
		err     error
		records int
		left    []string
	}{
		{1, []string{"#1"}, port.ErrConflict, 0, []string{"#1", "#2", "x", "#4", "#5"}},
		{0, []string{"#1", "#2", "#9"}, port.ErrConflict, 0, []string{"#1", "#2", "x", "#4", "#5"}},
		{0, []string{"#1", "#2", "x"}, nil, 1, []string{"#4", "#5"}},
		{1, []string{"#2"}, port.ErrConflict, 1, []string{"#4", "#5"}},
		{1, nil, nil, 2, []string{"#4", "#5"}},
		{2, []string{"#4", "#5"}, nil, 3, nil},
	} {
		before := db.Stats().Commits
		ctx, joined := store.Join(t.Context(), step.remove...)
		record := port.FeedRecord{ID: fmt.Sprint(step.after), At: newYear, Data: []byte("{}")}
		_, err := feed.Append(ctx, "s", port.Batch{After: step.after, Records: []port.FeedRecord{record}})
		if !errors.Is(err, step.err) || joined() != (step.err == nil) {
			t.Errorf("%v: got %v, joined %v, want %v", step.remove, err, joined(), step.err)
		}
		if commits := db.Stats().Commits - before; err == nil && commits != 1 {
			t.Errorf("%v: got %d commits, want 1", step.remove, commits)
		}
		records, err := feed.Read(t.Context(), "s", 0, 10)
		if _, left := changes(t, store); err != nil || len(records) != step.records || !slices.Equal(left, step.left) {
			t.Errorf("%v: got %d records, %v, and changes %v, want %d and %v", step.remove, len(records), err, left, step.records, step.left)
		}
	}
}

// TestCommitEncodesItsEvents: a change has the encoded events in place of the record of its run,
// unless they cannot be encoded.
func TestCommitEncodesItsEvents(t *testing.T) {
	t.Parallel()
	store, _, _ := setupStore(t, filepath.Join(t.TempDir(), "sortie.db"))
	var refused error
	store.EncodeEvents(func(c port.Change) (records []port.FeedRecord, err error) {
		for _, e := range c.Events {
			records = append(records, port.FeedRecord{ID: e.ID, At: e.At, Data: fmt.Appendf(nil, "%s %s %d", c.Run.ID, e.Type, c.Run.Version)})
		}
		return records, refused
	})
	created := newRun("a")
	if _, err := store.Create(t.Context(), created, nil); err != nil {
		t.Fatal(err)
	}
	advance(t, store, "a", run.CancelRequested{})
	refused = errors.New("malformed")
	other := newRun("b")
	if _, err := store.Create(t.Context(), other, nil); err != nil {
		t.Fatal(err)
	}
	got, _ := changes(t, store)
	if len(got) != 3 {
		t.Fatalf("got %d changes, want 3", len(got))
	}
	first := created.Events[0]
	want := port.Change{Run: run.Run{Tenant: created.Run.Tenant}, Encoded: []port.FeedRecord{
		{ID: first.ID, At: first.At.UTC(), Data: fmt.Appendf(nil, "a %s 1", first.Type)},
	}}
	if diff := cmp.Diff(want, got[0], cmpopts.IgnoreUnexported(fault.Fault{})); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
	if len(got[1].Encoded) == 0 || len(got[1].Events) > 0 || !strings.HasSuffix(string(got[1].Encoded[0].Data), " 2") {
		t.Errorf("got %+v, want the encoded events of version 2", got[1])
	}
	if got[2].Run.ID != "b" || len(got[2].Events) != 1 || len(got[2].Encoded) > 0 {
		t.Errorf("got %+v, want the change as it is", got[2])
	}
	for _, damaged := range []string{"\x01", "\x01\xff", "\x01\x05acme", "\x01\x04acme\x05x", "\x01\x04acme\x01x\x00\x09"} {
		if c, err := sqlite.ChangeOf([]byte(damaged)); err == nil {
			t.Errorf("%q: got %+v, want an error", damaged, c)
		}
	}
}
