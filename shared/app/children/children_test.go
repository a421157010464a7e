package children_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/children"
	"github.com/sortie-dev/sortie/shared/app/items"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fan"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

var epoch = time.Date(2027, 3, 1, 8, 0, 0, 0, time.UTC)

// store has the records of runs and the items. No further child can be created.
type store struct {
	port.RunStore
	port.ResourceStore
	runs  map[string]run.Run
	items map[port.ResourceRef]port.Resource
}

func (s *store) Load(_ context.Context, ref run.Ref) (run.Run, error) {
	if r, ok := s.runs[ref.ID]; ok {
		return r, nil
	}
	return run.Run{}, port.ErrNotFound
}

func (s *store) LoadResource(_ context.Context, ref port.ResourceRef) (port.Resource, error) {
	if r, ok := s.items[ref]; ok {
		return r, nil
	}
	return port.Resource{}, port.ErrNotFound
}

func (s *store) WriteResources(_ context.Context, save, _ []port.Resource, _ ...port.Note) error {
	for _, r := range save {
		s.items[r.ResourceRef] = r
	}
	return nil
}

var errFull = errors.New("the queue is full")

// Apply implements children.Runs.
func (s *store) Apply(_ context.Context, r run.Run, f run.Fact) (run.Run, error) {
	d, err := run.Decide(r, f, epoch)
	s.runs[r.ID] = d.Run
	return d.Run, err
}

// CreateChild implements children.Runs.
func (*store) CreateChild(context.Context, run.Run) (run.Run, error) { return run.Run{}, errFull }

// TestFailedCheckCountsEnds checks a parent of which one child has ended, and another one cannot be
// created. The end counts, and the next check looks at all children again.
func TestFailedCheckCountsEnds(t *testing.T) {
	t.Parallel()
	s := &store{runs: map[string]run.Run{}, items: map[port.ResourceRef]port.Resource{}}
	lists := items.New(s, clock.NewVirtual(epoch))
	list, err := lists.Save(t.Context(), "t", fan.ListOf([]string{"a", "b", "c"}))
	if err != nil {
		t.Fatal(err)
	}
	parent := run.New(run.Run{
		Tenant: "t", ID: "p", TaskID: "job_1", JobID: "j", Work: spec.Work{Kind: spec.KindJob, Program: &spec.Program{}, Fan: &fan.Spec{Parallel: 2}},
		Policy: spec.Policy{StartTimeout: time.Hour, TimeLimit: time.Hour},
	}, epoch).Run
	for _, f := range []run.Fact{run.Admitted{Pool: "default"}, run.FanBegun{Attempt: 1, Total: 3, List: list}} {
		if parent, err = s.Apply(t.Context(), parent, f); err != nil {
			t.Fatal(err)
		}
	}
	child := parent.ChildOf(0, fan.Item{Text: "a"}, epoch)
	child.State = run.Completed
	s.runs[child.ID] = child
	all := children.New(s, s, lists, clock.NewVirtual(epoch), slog.New(slog.DiscardHandler), 1)
	if err := all.Reconcile(t.Context(), parent.Ref()); !errors.Is(err, errFull) {
		t.Errorf("got %v, want that of the creation", err)
	}
	if p := s.runs["p"].Fan; p.Succeeded != 1 || p.Started != 3 || p.Verified != 0 {
		t.Errorf("got %+v, want the end and no check of all", p)
	}
}
