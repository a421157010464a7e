package dynamo_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestListByStateBoundsTheWorkOfAPage lists the only cancelled run, which is older than 2,000
// completed ones. The first page ends before it; the second one contains it.
func TestListByStateBoundsTheWorkOfAPage(t *testing.T) {
	t.Parallel()
	const scan = 2000 // a page reads so many runs, in steps of its limit and one
	cfg, now := database(t), time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	s, err := dynamo.Open(cfg, dynamo.Config{Table: table(t, cfg), Clock: clock.NewVirtual(now)})
	if err != nil {
		t.Fatal(err)
	}
	for n := range scan + 1 {
		w := port.WriteOf(run.New(export(fmt.Sprint("run-", n)), now.Add(time.Duration(n)*time.Second)))
		w.Run.State, w.Events = run.Completed, nil
		if n == 0 {
			w.Run.State = run.Cancelled
		}
		if _, err := s.Create(t.Context(), w, nil); err != nil {
			t.Fatal(err)
		}
	}
	page := port.Page{State: run.Cancelled, Limit: 7}
	runs, next, err := s.List(t.Context(), "default", page)
	if err != nil || len(runs) != 0 || next == "" {
		t.Fatalf("got %d runs, next page %q, %v; want none and a next page", len(runs), next, err)
	}
	page.Cursor = next
	if runs, next, err = s.List(t.Context(), "default", page); err != nil || len(runs) != 1 || runs[0].ID != "run-0" || next != "" {
		t.Errorf("got %d runs, next page %q, %v; want the cancelled run at the end", len(runs), next, err)
	}
}
