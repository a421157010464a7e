package orchestrator

import (
	"sync"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/run"
)

// knownLimit is how many runs a process remembers the claims of.
const knownLimit = 32 << 10

// known remembers whose tokens were held against their run, so that a heartbeat
// need not read the record again: a run never changes its workspace or its task.
// What is not remembered is looked up.
type known struct {
	mu   sync.RWMutex
	runs map[run.Ref]identity
}

type identity struct{ workspace, task string }

func newKnown() *known { return &known{runs: map[run.Ref]identity{}} }

func (k *known) has(c contract.Claims) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	found, ok := k.runs[run.Ref{Tenant: c.TenantID, ID: c.RunID}]
	return ok && found == identity{c.WorkspaceID, c.TaskID}
}

func (k *known) add(c contract.Claims) {
	if k.has(c) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.runs) >= knownLimit {
		clear(k.runs)
	}
	k.runs[run.Ref{Tenant: c.TenantID, ID: c.RunID}] = identity{c.WorkspaceID, c.TaskID}
}
