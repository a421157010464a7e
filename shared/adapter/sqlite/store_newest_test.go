package sqlite

import (
	"fmt"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

// TestNewestIsNeverOlderThanTheFile interleaves readers and writers of the
// file. Each starts before other commits and reports its result after them; the
// cache then returns the last commit or nothing.
func TestNewestIsNeverOlderThanTheFile(t *testing.T) {
	t.Parallel()
	born := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	version := func(v int64) *run.Run {
		return &run.Run{Tenant: "acme", ID: "a", TaskID: "a-task", CreatedAt: born, Version: v}
	}
	another := func(v int64) *run.Run {
		r := version(v)
		r.CreatedAt = born.Add(time.Hour)
		return r
	}
	commit := func(n *newest, v int64) (end func(done bool)) {
		return n.commit([]record{{Run: version(v)}})
	}
	others := func(n *newest, count int) {
		for i := range count {
			n.addCreated(&run.Run{Tenant: "acme", ID: fmt.Sprint(i), TaskID: fmt.Sprint(i)}, n.now())
		}
	}
	for name, row := range map[string]struct {
		play func(n *newest)
		want int64 // 0: the file is read
	}{
		"commit": {func(n *newest) {
			n.addCreated(version(1), n.now())
			commit(n, 2)(true)
		}, 2},
		"during a commit": {func(n *newest) {
			n.addCreated(version(1), n.now())
			commit(n, 2)
		}, 0},
		"reader during a commit": {func(n *newest) {
			n.addCreated(version(1), n.now())
			commit(n, 2)
			n.put(version(1), n.now())
		}, 0},
		"commit with a reader of the version before": {func(n *newest) {
			end := commit(n, 2)
			before := n.now()
			end(true)
			n.put(version(1), before)
		}, 2},
		"commit overtakes a reader": {func(n *newest) {
			before := n.now()
			commit(n, 2)(true)
			n.put(version(1), before)
		}, 2},
		"hundreds of commits overtake a commit": {func(n *newest) {
			n.addCreated(version(1), n.now())
			end := commit(n, 2)
			others(n, newestLimit)
			end(true)
		}, 0},
		"a commit begins before the end of another": {func(n *newest) {
			end, second := commit(n, 2), commit(n, 3)
			end(true)
			second(true)
		}, 3},
		"during a commit that began before the end of another": {func(n *newest) {
			end := commit(n, 2)
			commit(n, 3)
			end(true)
		}, 0},
		"commit overtakes a commit": {func(n *newest) {
			end, second := commit(n, 2), commit(n, 3)
			second(true)
			end(true)
		}, 0},
		"failed commit overtakes a commit, with a reader of the version before": {func(n *newest) {
			end := commit(n, 2)
			commit(n, 2)(false)
			n.put(version(1), n.now())
			end(true)
		}, 0},
		"commit and failed commit overtake a reader": {func(n *newest) {
			before := n.now()
			commit(n, 2)(true)
			commit(n, 2)(false)
			n.put(version(1), before)
		}, 0},
		"reader after a failed commit": {func(n *newest) {
			n.put(version(1), n.now())
			commit(n, 2)(false)
			n.put(version(2), n.now())
		}, 2},
		"commit and purge overtake a reader": {func(n *newest) {
			before := n.now()
			commit(n, 2)(true)
			n.forget()
			n.put(version(1), before)
		}, 0},
		"thousands of commits overtake a reader": {func(n *newest) {
			before := n.now()
			commit(n, 2)(true)
			others(n, 2*newestLimit+1)
			n.put(version(1), before)
		}, 0},
		"commit overtakes a creation": {func(n *newest) {
			before := n.now()
			commit(n, 2)(true)
			n.addCreated(version(1), before)
		}, 2},
		"creation during a commit": {func(n *newest) {
			before := n.now()
			commit(n, 2)
			n.addCreated(version(1), before)
		}, 0},
		"commit and failed commit overtake a creation": {func(n *newest) {
			before := n.now()
			commit(n, 2)(true)
			commit(n, 2)(false)
			n.addCreated(version(1), before)
		}, 0},
		"id of an expired run": {func(n *newest) {
			n.put(version(7), n.now())
			before := n.now()
			n.addCreated(another(1), n.now())
			n.put(version(7), before)
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNewest()
			row.play(n)
			got, ok := n.get(run.Ref{Tenant: "acme", ID: "a"})
			byTask, found := n.find("acme", "a-task")
			if ok != (row.want > 0) || got.Version != row.want || found != ok || byTask.Version != got.Version {
				t.Errorf("got version %d (%v), by task id %d (%v); want %d", got.Version, ok, byTask.Version, found, row.want)
			}
		})
	}
}
