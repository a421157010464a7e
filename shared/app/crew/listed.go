package crew

import (
	"hash/maphash"
	"strconv"
	"sync"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Placements are the machines of runs, with a few bytes for each. They record which of the
// machines the runner has listed. They are not safe for concurrent use.
type Placements struct {
	seed maphash.Seed
	// machines has the runs by the hash of the machine's key.
	machines map[uint64]placed
	pages    []page
}

// placed is the state of a machine in the record of its run.
type placed struct {
	owner   uint64 // hash of the machine's owner
	page    int32
	running bool // the run is Running
	listed  bool // the runner has listed the machine
}

// page is a page of the store's runs with a machine.
type page struct {
	after run.Ref
	// unlisted counts the machines of the page that were not listed.
	unlisted int
}

// NewPlacements returns placements without machines.
func NewPlacements() *Placements {
	return &Placements{seed: maphash.MakeSeed(), machines: map[uint64]placed{}}
}

// Add adds a page of the store. after is the run before its first one.
func (p *Placements) Add(after run.Ref, found []port.Placement) {
	for _, each := range found {
		owner := port.MachineOwner{Tenant: each.Run.Tenant, RunID: each.Run.ID, Attempt: each.Attempt}
		p.machines[p.key(each.Machine)] = placed{
			owner: p.ownerOf(owner), page: int32(len(p.pages)), running: each.State == run.Running, //nolint:gosec // G115: fewer pages
		}
	}
	p.pages = append(p.pages, page{after: after, unlisted: len(found)})
}

// Len returns the number of machines.
func (p *Placements) Len() int { return len(p.machines) }

// Pages returns the number of pages.
func (p *Placements) Pages() int { return len(p.pages) }

// Unlisted returns where a page starts; some is false if all its machines were listed.
func (p *Placements) Unlisted(page int) (after run.Ref, some bool) {
	return p.pages[page].after, p.pages[page].unlisted > 0
}

// Absent reports whether a machine is one of the placements and was not listed.
func (p *Placements) Absent(m port.Machine) bool {
	known, ok := p.machines[p.key(m)]
	return ok && !known.listed
}

// MarkListed marks a machine as listed. It reports whether the machine runs and belongs to a
// Running run.
func (p *Placements) MarkListed(m port.MachineStatus) bool {
	key := p.key(m.Machine)
	known, ok := p.machines[key]
	if !ok {
		return false
	}
	if !known.listed {
		known.listed = true
		p.machines[key] = known
		p.pages[known.page].unlisted--
	}
	return known.running && m.Phase == port.MachineRunning && known.owner == p.ownerOf(m.Owner)
}

func (p *Placements) key(m port.Machine) uint64 {
	k := m.Key()
	return HashOf(p.seed, k.Runner, k.App, k.Cluster, k.ID)
}

func (p *Placements) ownerOf(o port.MachineOwner) uint64 {
	return HashOf(p.seed, o.Tenant, o.RunID, strconv.Itoa(o.Attempt))
}

// WarmList has the warm machines that the runner has listed, by pool. It is safe for concurrent
// use.
type WarmList struct {
	mu    sync.Mutex
	pools map[platform.PoolRef]map[string]port.MachineStatus
}

// NewWarmList returns an empty list.
func NewWarmList() *WarmList {
	return &WarmList{pools: map[platform.PoolRef]map[string]port.MachineStatus{}}
}

// Add adds a machine under the pool of its record. It returns false for a machine without a
// record.
func (l *WarmList) Add(m port.MachineStatus, record platform.WarmRef) bool {
	if record == (platform.WarmRef{}) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	ref := platform.PoolRef{Tenant: record.Tenant, ID: record.Pool}
	if l.pools[ref] == nil {
		l.pools[ref] = map[string]port.MachineStatus{}
	}
	l.pools[ref][m.ID] = m
	return true
}

// Pools returns the machines by pool and id. The caller must not call Add meanwhile.
func (l *WarmList) Pools() map[platform.PoolRef]map[string]port.MachineStatus { return l.pools }
