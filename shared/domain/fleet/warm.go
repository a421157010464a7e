package fleet

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// warmCreation is how long a machine may stay in WarmCreating. It is longer than a create call
// and an image pull take.
const warmCreation = 5 * time.Minute

// WarmRoom reports whether the number of unclaimed warm machines is within the maximum of the
// pool. It is false if the pool has no warm machines or is draining.
func WarmRoom(p platform.Pool, have []platform.WarmMachine) bool {
	unclaimed := 0
	for _, w := range have {
		if w.Phase == platform.WarmCreating || w.Phase == platform.WarmReady || w.Phase == platform.WarmRecycling {
			unclaimed++
		}
	}
	return p.Warm != nil && !p.Draining && unclaimed <= p.Warm.Max
}

// WarmPlan contains the changes to the warm machines of a pool.
type WarmPlan struct {
	// Create lists the keys of the machines to create.
	Create []platform.WarmKey
	// End lists the machines to destroy. They are too old, too many, in another placement,
	// stuck in their creation, or their image tag refers to another image now. In a pool that
	// drains or has no warm machines, all unclaimed ones are destroyed.
	End []platform.WarmMachine
	// Recycle lists the machines in WarmRecycling to make ready again.
	Recycle []platform.WarmMachine
	// Stuck counts the machines in End that stayed in WarmCreating.
	Stuck int
	// Save lists the machines whose UnneededAt changes.
	Save []platform.WarmMachine
}

// warmSpare is how long an unneeded ready machine is kept. It is longer than the start of the
// run that the machine was created for takes.
const warmSpare = time.Minute

// PlanWarm compares the warm machines of a pool with its settings. standard is the key of Min.
// firing is the number of machines that firings within Ahead need. Claimed machines are not
// counted. Recycled machines are kept up to the maximum.
func PlanWarm(p platform.Pool, standard platform.WarmKey, firing map[platform.WarmKey]int, have []platform.WarmMachine, now time.Time) (plan WarmPlan) {
	wanted, age, most := map[platform.WarmKey]int{}, platform.DefaultWarmAge, 0
	keys := []platform.WarmKey{standard}
	if p.Warm != nil && !p.Draining {
		left := p.Warm.Max
		age, most = p.Warm.Age(), p.Warm.Max
		want := func(key platform.WarmKey, n int) {
			wanted[key] = min(n, left)
			left -= wanted[key]
		}
		want(standard, max(p.Warm.Min, firing[standard]))
		for _, key := range sortedKeys(firing) {
			if key != standard {
				keys = append(keys, key)
				want(key, firing[key])
			}
		}
	}
	have = slices.Clone(have)
	slices.SortFunc(have, func(a, b platform.WarmMachine) int { // the machines to keep come first
		return cmp.Or(cmp.Compare(rankOf(a.Phase), rankOf(b.Phase)), b.CreatedAt.Compare(a.CreatedAt), strings.Compare(a.ID, b.ID))
	})
	var spare []platform.WarmMachine
	kept := 0
	for _, w := range have {
		lived := now.Sub(w.CreatedAt)
		switch {
		case w.Phase == platform.WarmClaimed:
		case w.Phase == platform.WarmEnding:
			plan.End = append(plan.End, w)
		case w.Phase == platform.WarmCreating && lived >= warmCreation:
			plan.End, plan.Stuck = append(plan.End, w), plan.Stuck+1
		case w.Phase == platform.WarmRecycling && !p.Recycles(), lived >= age || most == 0 || !w.Placement.Equal(p.Placement) || outdated(w, have):
			plan.End = append(plan.End, w)
		case wanted[w.Key] == 0:
			spare = append(spare, w)
		default:
			wanted[w.Key]--
			kept++
			plan.addReusable(w, time.Time{})
		}
	}
	for _, key := range keys {
		for range wanted[key] {
			plan.Create = append(plan.Create, key)
		}
	}
	room := most - kept - len(plan.Create)
	for _, w := range spare {
		again := w.Phase == platform.WarmRecycling || w.Phase == platform.WarmReady && w.Recycled > 0 && p.Recycles()
		brief := w.Phase == platform.WarmReady && (w.UnneededAt.IsZero() || now.Sub(w.UnneededAt) < warmSpare)
		if room <= 0 || !again && !brief {
			plan.End = append(plan.End, w)
			continue
		}
		room--
		since := w.UnneededAt
		if since.IsZero() {
			since = now
		}
		plan.addReusable(w, since)
	}
	return plan
}

// outdated reports whether one of the machines was created later with another digest of the
// same image.
func outdated(w platform.WarmMachine, have []platform.WarmMachine) bool {
	return slices.ContainsFunc(have, func(other platform.WarmMachine) bool {
		return w.Outdated(other.Key.Image, other.Digest, other.CreatedAt)
	})
}

// addReusable keeps a machine: it is recycled, or saved if its UnneededAt changes.
func (p *WarmPlan) addReusable(w platform.WarmMachine, unneededAt time.Time) {
	switch {
	case w.Phase == platform.WarmRecycling:
		p.Recycle = append(p.Recycle, w)
	case !w.UnneededAt.Equal(unneededAt):
		w.UnneededAt = unneededAt
		p.Save = append(p.Save, w)
	}
}

func rankOf(s platform.WarmState) int {
	return -slices.Index([]platform.WarmState{platform.WarmEnding, platform.WarmCreating, platform.WarmRecycling, platform.WarmReady}, s)
}

func sortedKeys(of map[platform.WarmKey]int) []platform.WarmKey {
	keys := make([]platform.WarmKey, 0, len(of))
	for key := range of {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b platform.WarmKey) int {
		return cmp.Or(strings.Compare(a.Image, b.Image), a.CPUs-b.CPUs, a.MemoryMB-b.MemoryMB, strings.Compare(a.Region, b.Region))
	})
	return keys
}
