package api

import (
	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

// Pool returns the response for a pool.
func Pool(v orchestrator.PoolView) contract.Pool {
	return contract.Pool{
		ID: v.ID, Limit: v.Limit, QueueLimit: v.QueueLimit, Draining: v.Draining, DrainBy: v.DrainBy, Held: v.Held, Queued: v.Queued,
		Version: v.Version, CreatedAt: v.CreatedAt, UpdatedAt: v.UpdatedAt, UpdatedBy: v.UpdatedBy,
	}
}

// PoolHealth returns the response for the state of a pool.
func PoolHealth(h orchestrator.PoolHealth) contract.PoolHealth {
	found := contract.PoolHealth{
		Live: true, Ready: !h.Draining, Draining: h.Draining, Held: h.Held, Queued: h.Queued, Machines: h.Machines,
		Metrics: contract.PoolMetrics{Limit: h.Limit, QueueLimit: h.QueueLimit, LongestWaitSeconds: h.LongestWait.Seconds()},
	}
	if h.LastError != nil {
		found.LastError = &contract.PoolError{Code: string(h.LastError.Code), Message: h.LastError.Message}
	}
	return found
}
