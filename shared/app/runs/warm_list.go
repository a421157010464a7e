package runs

import (
	"context"
	"sync"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// WarmMachines keeps the warm machines of pools; see warm.Machines.
type WarmMachines interface {
	// Sweep creates and destroys warm machines until each pool matches its settings. listed has
	// those that the runner has listed, by pool and id.
	Sweep(ctx context.Context, listed map[platform.PoolRef]map[string]port.MachineStatus) error
}

// warmList has the warm machines that the runner has listed, by pool. It is safe for concurrent
// use.
type warmList struct {
	mu    sync.Mutex
	pools map[platform.PoolRef]map[string]port.MachineStatus
}

func newWarmList() *warmList {
	return &warmList{pools: map[platform.PoolRef]map[string]port.MachineStatus{}}
}

// addWarm adds a listed machine if it is a warm machine, and reports whether it is.
func (l *warmList) addWarm(m port.MachineStatus) bool {
	return l.add(m, m.Warm)
}

// add adds a machine under the pool of its record. It returns false for a machine without a
// record.
func (l *warmList) add(m port.MachineStatus, record platform.WarmRef) bool {
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
