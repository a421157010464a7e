package watch

import (
	"cmp"
	"slices"

	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// fact is the state of a machine that its run should record too; empty for no such state.
type fact string

const (
	running fact = "running"
	refused fact = "refused" // it cannot start
	gone    fact = "gone"
	absent  fact = "absent" // it is no longer in the cluster
)

func factOf(m port.MachineStatus) fact {
	switch {
	case m.Phase == port.MachineGone:
		return gone
	case m.StartFault != nil:
		return refused
	case m.Phase == port.MachineRunning:
		return running
	}
	return ""
}

// ledger maps the observed machines to the last reports about them.
type ledger map[port.Machine]*entry

type entry struct {
	owner          port.MachineOwner
	shown, settled fact
}

// update records the tenant's machines that the cluster shows. complete means that it shows all
// of them, so all others have disappeared.
func (l ledger) update(tenant string, seen []port.MachineStatus, complete bool) {
	present := make(map[port.Machine]bool, len(seen))
	for _, m := range seen {
		if m.Owner.Tenant != tenant || m.Owner.RunID == "" || m.Owner.Attempt < 1 {
			continue
		}
		key := m.Key()
		present[key] = true
		if l[key] == nil {
			l[key] = &entry{owner: m.Owner}
		}
		l[key].shown = factOf(m)
	}
	for key, e := range l {
		switch {
		case present[key] || !complete:
		case e.settled == gone || e.settled == absent:
			delete(l, key)
		default:
			e.shown = absent
		}
	}
}

// news returns at most n machines with an unreported fact, ended ones first.
func (l ledger) news(n int) []contract.ReportedMachine {
	var found []port.Machine
	for key, e := range l {
		if e.shown != "" && e.shown != e.settled {
			found = append(found, key)
		}
	}
	slices.SortFunc(found, func(a, b port.Machine) int {
		first := func(m port.Machine) int {
			if l[m].shown == running {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(first(a), first(b)), cmp.Compare(a.App, b.App), cmp.Compare(a.ID, b.ID))
	})
	reported := make([]contract.ReportedMachine, 0, n)
	for _, key := range found[:min(n, len(found))] {
		owner := l[key].owner
		reported = append(reported, contract.ReportedMachine{RunID: owner.RunID, Attempt: owner.Attempt, Namespace: key.App, MachineID: key.ID})
	}
	return reported
}

// settle records that the facts of machines were reported.
func (l ledger) settle(reported []contract.ReportedMachine) {
	done := make(map[string]bool, len(reported))
	for _, m := range reported {
		done[m.Namespace+"/"+m.MachineID] = true
	}
	for key, e := range l {
		if done[key.App+"/"+key.ID] {
			e.settled = e.shown
		}
	}
}
