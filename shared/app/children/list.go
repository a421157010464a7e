package children

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/sortie-dev/sortie/shared/app/items"
	"github.com/sortie-dev/sortie/shared/base/batch"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fan"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Finder finds the runs of clients.
type Finder interface {
	// Find returns a task of the caller's tenant. Fault: NotFound.
	Find(ctx context.Context, who port.Identity, taskID string) (run.Run, error)
}

// Reader lists the children of runs. It is safe for concurrent use.
type Reader struct {
	runs  Finder
	store port.RunStore
	lists *items.Lists
	clock clock.Clock
}

// NewReader returns a Reader of the runs in a store.
func NewReader(runs Finder, store port.RunStore, lists *items.Lists, c clock.Clock) *Reader {
	return &Reader{runs: runs, store: store, lists: lists, clock: c}
}

// Query selects a page of the children of a run.
type Query struct {
	// Status selects children with that status; empty means all.
	Status fan.Status
	// Cursor is Next of the previous page; empty means the first page.
	Cursor string
	// Limit is 1 to 1000.
	Limit int
}

// Listed is a child in a list. Its parent has counted it as Status.
type Listed struct {
	Item   fan.Item
	Status fan.Status
	// Run is the run of the child, without its work. Its ID is empty for a child that waits, or
	// whose record has expired.
	Run run.Run
}

// Listing is a page of the children of a run, in the order of the items.
type Listing struct {
	// Parent is the run with the children, at the time At.
	Parent   run.Run
	At       time.Time
	Children []Listed
	// Next is the cursor of the next page; empty on the last one.
	Next string
}

// readers is the number of children whose runs a list reads at the same time.
const readers = 8

// List returns a page of the children of a run. It is empty for a run without children, or whose
// children have not begun. Faults: NotFound, InvalidRequest for the cursor.
func (s *Reader) List(ctx context.Context, who port.Identity, id string, q Query) (Listing, error) {
	first, err := numberOf(q.Cursor)
	if err != nil {
		return Listing{}, err
	}
	parent, err := s.runs.Find(ctx, who, id)
	found := Listing{Parent: parent, At: clock.UTC(s.clock)}
	if err != nil || parent.Fan == nil {
		return found, err
	}
	list, err := s.lists.Load(ctx, parent.Tenant, parent.Work.Fan.List)
	if err != nil && !errors.Is(err, port.ErrNotFound) {
		return Listing{}, err
	}
	var numbers []int
	for n, status := range parent.Fan.Statuses() {
		if n < first || q.Status != "" && q.Status != status {
			continue
		}
		if len(numbers) == q.Limit {
			found.Next = strconv.Itoa(n)
			break
		}
		child := Listed{Status: status, Item: fan.Item{Index: n}}
		if n < len(list) {
			child.Item = list[n]
		}
		numbers, found.Children = append(numbers, n), append(found.Children, child)
	}
	err = errors.Join(batch.Each(readers, batch.Indexes(len(numbers)), func(i int) error {
		return s.read(ctx, parent, numbers[i], &found.Children[i])
	})...)
	return found, err
}

// read reads the run of a child that has started.
func (s *Reader) read(ctx context.Context, parent run.Run, n int, to *Listed) error {
	if n >= parent.Fan.Started {
		return nil
	}
	child, err := s.store.Load(ctx, run.Ref{Tenant: parent.Tenant, ID: fan.RunID(parent.ID, n)})
	if errors.Is(err, port.ErrNotFound) || err == nil && child.Expired(clock.UTC(s.clock)) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read child %d of run %s: %w", n, parent.ID, err)
	}
	if child.Child != nil {
		to.Item = child.Child.Item
	}
	to.Run = run.Run{ // a page has a thousand of them
		Tenant: child.Tenant, ID: child.ID, TaskID: child.TaskID, State: child.State, Skipped: child.Skipped, Missed: child.Missed,
		Attempt: child.Attempt, StartedAt: child.StartedAt, EndedAt: child.EndedAt, Fault: child.Fault,
	}
	return nil
}

// numberOf returns the number of the first child of a page.
func numberOf(cursor string) (int, error) {
	if cursor == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(cursor)
	if err != nil || n < 1 || n >= fan.MaxChildren || strconv.Itoa(n) != cursor {
		return 0, fault.Invalid("cursor", "not a cursor of this list")
	}
	return n, nil
}
