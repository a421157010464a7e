package activity

import (
	"cmp"
	"slices"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

// Total returns the figures of all slots: causes by their number of runs, works with the largest
// share of failures of the first attempt first, then the slowest.
func Total(slots []Slot) Slot {
	var all Slot
	for _, s := range slots {
		all.Created, all.Completed, all.Skipped = all.Created+s.Created, all.Completed+s.Completed, all.Skipped+s.Skipped
		all.Cancelled, all.Failed, all.Partial = all.Cancelled+s.Cancelled, all.Failed+s.Failed, all.Partial || s.Partial
		all.Children += s.Children
	}
	all.Causes, all.Works = allCauses(slots), allWorks(slots)
	return all
}

func allCauses(slots []Slot) (all []Cause) {
	type key struct {
		Work
		code  string
		state run.State
	}
	index := map[key]int{}
	for _, s := range slots {
		for _, c := range s.Causes {
			k := key{c.Work, c.Code, c.State}
			if i, ok := index[k]; ok {
				all[i].merge(c)
				continue
			}
			index[k] = len(all)
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b Cause) int {
		return cmp.Or(b.Runs-a.Runs, b.Last.Compare(a.Last), cmp.Compare(a.Code, b.Code))
	})
	return all
}

func allWorks(slots []Slot) (all []Used) {
	index := map[Work]int{}
	for _, s := range slots {
		for _, u := range s.Works {
			i, ok := index[u.Work]
			if !ok {
				i = len(all)
				index[u.Work], all = i, append(all, Used{Work: u.Work})
			}
			all[i].merge(u)
		}
	}
	p95 := make(map[Work]float64, len(all))
	for _, u := range all {
		p95[u.Work] = u.Seconds(0.95)
	}
	slices.SortFunc(all, func(a, b Used) int {
		return cmp.Or(
			cmp.Compare(b.FirstFailed*a.Runs, a.FirstFailed*b.Runs), cmp.Compare(p95[b.Work], p95[a.Work]),
			cmp.Compare(a.JobID, b.JobID), cmp.Compare(a.Kind, b.Kind),
		)
	})
	return all
}
