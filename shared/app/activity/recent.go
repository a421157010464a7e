package activity

import (
	"sync"

	"github.com/sortie-dev/sortie/shared/domain/activity"
)

// windowsKept is the largest number of windows of tenants whose slots stay in memory, each with
// less than a megabyte.
const windowsKept = 24

// recent has the slots of the windows that were read last. It is safe for concurrent use.
type recent struct {
	mu  sync.Mutex
	all map[windowOf]known
	// order has the keys of all, the one that was stored first at the front.
	order []windowOf
}

// windowOf is a window of a tenant.
type windowOf struct{ tenant, window string }

// known is what was read of a window, and the figures of it. All of its slots are shared.
type known struct {
	// version is that of the stored state, that the slots continue.
	version int64
	state   state
	slots   map[string]*stored
	figures Figures
}

// matches reports whether the stored figures are those from which k was read.
func (k known) matches(c count) bool {
	return k.slots != nil && k.version == c.stored.Version && k.state.Epoch == c.state.Epoch
}

func (r *recent) get(tenant string, w activity.Window) known {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[windowOf{tenant, w.Name}]
}

// put keeps what was read of a window, and forgets the window that was stored first if there are
// too many.
func (r *recent) put(tenant string, w activity.Window, c count, f Figures) {
	for _, s := range c.slots {
		if !s.shared {
			s.shared = true
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key := windowOf{tenant, w.Name}
	if _, ok := r.all[key]; !ok {
		if len(r.order) >= windowsKept {
			delete(r.all, r.order[0])
			r.order = r.order[1:]
		}
		r.order = append(r.order, key)
	}
	if r.all == nil {
		r.all = map[windowOf]known{}
	}
	r.all[key] = known{version: c.stored.Version, state: c.state, slots: c.slots, figures: f}
}
