// Package routing chooses among the pools that can serve an inference task: that of its model, and
// the fallbacks of this pool. The acceptance of the task fixes them, with the prices of each.
//
// The package is pure. It never returns a pool twice for one task.
package routing

import (
	"slices"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/usage"
)

// Route is a pool that can serve a task, as of the acceptance of the task.
type Route struct {
	Pool string `json:"pool"`
	// From is the pool whose fallback it is; empty for the task's own pool. On are the reasons.
	From string                    `json:"from,omitempty"`
	On   []platform.FallbackReason `json:"on,omitempty"`
	// Model is the model of the pool. The other fields are as in spec.Inference.
	Model       string `json:"model"`
	EngineModel string `json:"engineModel,omitempty"`
	Engine      string `json:"engine"`
	MaxTokens   int    `json:"maxTokens"`
	usage.Prices
	// Unfit says why the pool cannot serve the task; empty if it can. TooLong: the prompt does not
	// fit into its context.
	Unfit   string `json:"unfit,omitempty"`
	TooLong bool   `json:"tooLong,omitempty"`
}

// Routes are the pools of a task in the order of preference, its own pool first. They are nil for a
// task whose pool has no fallbacks.
type Routes []Route

// Of returns the route to a pool.
func (all Routes) Of(pool string) (r Route, ok bool) {
	i := slices.IndexFunc(all, func(r Route) bool { return r.Pool == pool })
	if i < 0 {
		return r, false
	}
	return all[i], true
}

// Next returns the first fallback for a reason: of the current pool, and then of the task's own
// pool. It omits those that tried has, that are unfit, and that are closed.
func (all Routes) Next(current string, reason platform.FallbackReason, tried func(pool string) bool, closed []string) (r Route, ok bool) {
	if len(all) == 0 || reason == "" {
		return r, false
	}
	for _, from := range []string{current, all[0].Pool} {
		for _, r := range all[1:] {
			if r.From == from && r.Unfit == "" && slices.Contains(r.On, reason) && !tried(r.Pool) && !slices.Contains(closed, r.Pool) {
				return r, true
			}
		}
	}
	return r, false
}

// fieldPrompt is the field of a fault for a prompt that is too long for its model.
const fieldPrompt = "prompt"

// Limited returns a copy of the routes in which those to other models than the allowed ones are unfit.
func (all Routes) Limited(allows func(model string) bool) Routes {
	limited := slices.Clone(all)
	for i := range limited {
		if to := &limited[i]; to.Unfit == "" && !allows(to.Model) {
			to.Unfit = "the token may not use the model " + to.Model
		}
	}
	return limited
}

// ReasonOf returns the reason for a fallback in the failure of an attempt that has sent nothing to
// its client; empty if another pool would fail in the same way.
func ReasonOf(f *fault.Fault) platform.FallbackReason {
	switch {
	case f == nil:
	case f.Code == fault.InvalidParams && f.Field == fieldPrompt:
		return platform.FallbackContext
	case slices.Contains([]fault.Code{fault.PoolUnavailable, fault.PoolUnready, fault.ReplicaExhausted, fault.DecodeTimeout, fault.WorkerReset, fault.ModelUnknown}, f.Code):
		return platform.FallbackError
	}
	return ""
}
