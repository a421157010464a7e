package runs_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/app/jobs"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// drawnGraph is a graph of jobs n0, n1 and so on, each after earlier ones.
type drawnGraph struct {
	needs [][]run.Need
}

func drawGraph(random *rand.Rand) (g drawnGraph, documents []string) {
	documents = []string{"n0\n"}
	g.needs = append(g.needs, nil)
	for i := 1; i < 2+random.IntN(49); i++ {
		var needs []run.Need
		var after []string
		for _, j := range random.Perm(i)[:1+random.IntN(min(i, 3))] {
			n := run.Need{JobID: fmt.Sprintf("n%d", j), When: []run.When{run.WhenSuccess, run.WhenSuccess, run.WhenAlways, run.WhenFailure}[random.IntN(4)]}
			needs, after = append(needs, n), append(after, fmt.Sprintf("{job: %s, when: %s}", n.JobID, n.When))
		}
		g.needs = append(g.needs, needs)
		documents = append(documents, fmt.Sprintf("n%d\nafter: [%s]\n", i, strings.Join(after, ", ")))
	}
	return g, documents
}

// TestDrawnGraphs runs drawn graphs of up to 50 jobs, whose runs succeed or fail, over a store whose
// creations are lost before or after they are applied. Every job has one run, after those that it
// comes after, and is skipped exactly if one of these did not end as needed.
//
// Mutations that this test finds: a run starts when one of several jobs has ended; a skipped run
// counts as a success; the effect is done although a creation failed.
func TestDrawnGraphs(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 0))
		h := setup(t)
		g, documents := drawGraph(random)
		h.putJobs(documents...)
		root, _, err := h.service.Jobs.RunJob(t.Context(), jobs.RunRequest{Identity: client, JobID: "n0"})
		h.ok(err)
		h.step()
		h.store.around = func(write func() error) error {
			lost := random.IntN(4)
			if lost == 0 {
				return errors.New("lost before the commit")
			}
			if err := write(); err != nil || lost > 1 {
				return err
			}
			return errors.New("lost after the commit")
		}
		for range 400 {
			for _, m := range h.runner.launched {
				if m.Exit == nil && random.IntN(2) == 0 {
					m.exit(random.IntN(2))
				}
			}
			_ = h.service.Sweep(h.Context(), 0)
			h.step()
			h.advance(20 * time.Second)
			if h.allEnded(root.ID, len(g.needs)) {
				break
			}
		}
		h.checkGraph(seed, g, root)
	}
}

// allEnded reports whether n jobs have a run of the graph that has ended.
func (h *fixture) allEnded(root string, n int) bool {
	for i := range n {
		r, err := h.store.Load(h.Context(), graphRef(root, i))
		if err != nil || !r.State.Terminal() {
			return false
		}
	}
	return true
}

func graphRef(root string, i int) run.Ref {
	ref := run.Ref{Tenant: client.Tenant, ID: root}
	if i > 0 {
		ref.ID = fmt.Sprintf("n%d:%s", i, root)
	}
	return ref
}

func (h *fixture) checkGraph(seed uint64, g drawnGraph, root run.Run) {
	h.Helper()
	for i, needs := range g.needs {
		id := fmt.Sprintf("n%d", i)
		found, _, err := h.store.List(h.Context(), client.Tenant, port.Page{JobID: id, Limit: 10})
		h.ok(err)
		r, err := h.store.Load(h.Context(), graphRef(root.ID, i))
		if err != nil || len(found) != 1 || !r.State.Terminal() {
			h.Errorf("seed %d: got %d runs of %s in state %s (%v), want one that has ended", seed, len(found), id, r.State, err)
			continue
		}
		met := true
		for _, n := range needs {
			var j int
			_, _ = fmt.Sscanf(n.JobID, "n%d", &j)
			before, err := h.store.Load(h.Context(), graphRef(root.ID, j))
			h.ok(err)
			ok := before.State == run.Completed && !before.Skipped
			switch n.When {
			case run.WhenAlways:
				ok = true
			case run.WhenFailure:
				ok = before.State == run.Failed
			}
			met = met && ok
			if !r.Skipped && before.EndedAt.After(r.CreatedAt) {
				h.Errorf("seed %d: %s began at %s, before the end of %s at %s", seed, id, r.CreatedAt, n.JobID, before.EndedAt)
			}
		}
		if met == r.Skipped {
			h.Errorf("seed %d: got %s skipped %v, want %v", seed, id, r.Skipped, !met)
		}
	}
}
