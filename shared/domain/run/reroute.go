package run

import (
	"fmt"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/routing"
)

// NextRoute returns the next pool of an inference task for a reason; see routing.Routes.Next.
func (r Run) NextRoute(reason platform.FallbackReason, closed []string) (routing.Route, bool) {
	return r.Routes.Next(r.Slot.Pool, reason, r.tried, closed)
}

// Refused returns a new inference task in the pool of a route, because its pool refused it.
func (r Run) Refused(to routing.Route, reason platform.FallbackReason, message string, now time.Time) Run {
	r.Detour = r.detourTo(to.Pool, reason, message, now)
	return r.at(to)
}

func (r Run) detourTo(pool string, reason platform.FallbackReason, message string, now time.Time) *Detour {
	detour := Detour{Home: r.Slot.Pool}
	if r.Detour != nil {
		detour = *r.Detour
	}
	detour.Steps = append(slices.Clone(detour.Steps), DetourStep{
		Attempt: r.Attempt.Number, From: r.Slot.Pool, To: pool, Reason: reason, Message: message, At: now.UTC(),
	})
	return &detour
}

// at returns an inference task in the pool of a route, with the model and the prices of the pool.
// What it holds of its budgets does not change.
func (r Run) at(to routing.Route) Run {
	work := *r.Work.Inference
	work.Engine, work.EngineModel, work.MaxTokens, work.Served = to.Engine, to.EngineModel, to.MaxTokens, to.Model
	if work.Served == work.Model {
		work.Served = ""
	}
	r.Work.Inference = &work
	if r.Reservation != nil {
		priced := *r.Reservation
		priced.Prices = to.Prices
		r.Reservation = &priced
	}
	r.Slot.Pool, r.FailedReplicas = to.Pool, nil
	return r
}

// reroute lets the next attempt of a failed inference task use another pool, if there is one for the
// reason of the failure. It reports whether it does.
func (d *draft) reroute(closed []string, elsewhere bool) bool {
	why := d.Fault
	reason := routing.ReasonOf(why)
	to, ok := d.NextRoute(reason, closed)
	if !ok || elsewhere && reason == platform.FallbackError {
		return false
	}
	d.Detour = d.detourTo(to.Pool, reason, why.Message, d.now)
	d.Detour.Leaving = true
	d.Spent.Attempts, d.Spent.Starts = 0, 0
	d.retryNow(fmt.Sprintf("falls back to pool %s (%s): %s", to.Pool, reason, why.Message))
	return true
}

// retryNow lets the next attempt of an inference task follow at once.
func (d *draft) retryNow(message string) {
	d.RetryAt = d.now
	d.Slot.State, d.Slot.Since = "", time.Time{}
	d.enter(Retrying, message, d.Fault)
}
