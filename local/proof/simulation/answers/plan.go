package answers

import (
	"fmt"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// plan has the probabilities of faults, each from 0 to 1.
type plan struct {
	// lost calls are not made. unsure calls are made and reported as failed. slow calls take up
	// to slowest. crashes kill the process at a call. interrupts end the context of a client.
	lost, unsure, slow, crashes, interrupts float64
	// What engines do, and how often they load.
	busy, start, reset, early, sendError, stall, repeat, keep float64
	loads                                                     int
	// refusals is the number of times at which an engine refuses everything for a while. silent
	// is the probability that it then does not answer a status call or a request.
	refusals int
	silent   float64
	// downtime is the longest time until a host starts another process.
	downtime time.Duration
	// cancels is the fraction of tasks that are cancelled. waits is the fraction of callers who
	// wait for the answer. leaves is the fraction of these who disconnect before the answer
	// ends. cuts is the probability that a connection breaks at an event. again is the fraction
	// of requests that are repeated after their acceptance.
	cancels, waits, leaves, cuts, again float64
}

// slowest limits the time of a slow call.
const slowest = 15 * time.Second

// reliable reports whether only engines and clients fail.
func (p plan) reliable() bool { return p.lost+p.unsure+p.slow+p.crashes+p.interrupts == 0 }

// limits are the limits of a scope that were set before the first task.
type limits struct{ budget.Limit }

// longestTask limits the deadlines of tasks.
const longestTask = 5 * time.Minute

// draw draws the parameters of the world.
func (w *world) draw() {
	r := w.roll("world")
	some := func(most float64) float64 {
		if r.IntN(2) == 0 {
			return 0
		}
		return r.Float64() * most
	}
	w.plan = plan{
		busy: some(0.2), start: some(0.2), reset: some(0.2), early: some(0.2), sendError: some(0.1), stall: some(0.2), repeat: some(0.3), keep: some(1),
		loads: r.IntN(3) * r.IntN(3), downtime: upTo(r, time.Minute), cancels: some(0.9), waits: some(0.3), cuts: some(0.2), again: some(0.6),
	}
	w.plan.refusals, w.plan.silent, w.plan.leaves = r.IntN(2)*r.IntN(5), some(0.5), some(1)
	if r.IntN(3) > 0 {
		w.plan.lost, w.plan.unsure, w.plan.slow = some(0.08), some(0.08), some(0.05)
		w.plan.crashes, w.plan.interrupts = some(0.02), some(0.2)
	}
	w.price = catalog.Price{Input: []int64{0, 0, 500}[r.IntN(3)], Output: 1500}
	w.place = platform.EnginePlace{Kind: platform.EngineMock, Model: modelID, Slots: 1 + r.IntN(3), Replicas: make([]platform.EngineReplica, 1+r.IntN(3))}.WithIDs()
	for _, each := range w.place.Replicas {
		w.newReplica(each.ID)
	}
	w.drawSpare()
	w.drawRoutes()
	w.faultsEnd, w.bound = w.start.Add(time.Minute+upTo(r, 4*time.Minute)), longestTask+4*time.Minute
	w.arrivals = []time.Duration{5 * time.Second, time.Minute, w.faultsEnd.Sub(w.start)}[r.IntN(3)]
	hosts := 1
	if w.deployed() {
		hosts = 2 + r.IntN(2)
	}
	for i := range hosts {
		w.hosts = append(w.hosts, &host{w: w, name: fmt.Sprintf("host-%d", i+1)})
	}
	if r.IntN(2) == 0 {
		w.limits[budget.ScopeTenant] = limits{budget.Limit{Tokens: new(int64(r.IntN(2000)))}}
	}
	if r.IntN(3) == 0 {
		w.limits[budget.ProjectScope("project-0")] = limits{budget.Limit{CostNano: new(int64(r.IntN(1_000_000))), Turns: new(int64(r.IntN(10)))}}
	}
	w.drawGrants()
	w.days = []int{0, 1, 7}[w.roll("days").IntN(3)]
	if w.roll("cached price").IntN(2) == 0 {
		w.price.Cached = new(w.price.Input / 10)
	}
}

// drawGrants draws the limits of keys.
func (w *world) drawGrants() {
	r := w.roll("keys")
	w.grants = map[string]access.Grant{}
	for i := range 2 {
		var g access.Grant
		if r.IntN(2) == 0 {
			g.Budget = &budget.Allowance{CostNano: int64(1 + r.IntN(1_000_000)), Period: budget.Total}
		}
		if r.IntN(3) == 0 {
			g.RequestsPerMinute = int64(1 + r.IntN(20))
		}
		w.grants[fmt.Sprintf("project-%d", i)] = g
	}
}

// keyLimit returns the limit of the account of a key, if the scope is of one.
func (w *world) keyLimit(scope string) (l budget.Limit, ok bool) {
	if name, ok := budget.RateOf(scope); ok {
		most := w.grants[strings.TrimPrefix(name, "key-")].RequestsPerMinute
		return budget.Limit{Turns: &most}, true
	}
	if _, ok := budget.OfferOf(scope); ok && w.offer.TokensPerDay > 0 {
		return budget.Limit{Tokens: &w.offer.TokensPerDay}, true
	}
	name, ok := budget.KeyOf(scope)
	if of := w.grants[strings.TrimPrefix(name, "key-")].Budget; ok && of != nil {
		l = of.Limit()
	}
	return l, ok
}

// newReplica adds an inference server.
func (w *world) newReplica(id string) {
	one := &replica{w: w, id: id, open: map[*process]int{}, closed: map[*process]time.Time{}}
	one.mock = mockengine.New(mockengine.Config{Clock: bubble, Slots: w.place.Slots, ContextTokens: contextTokens, Plan: one.course})
	w.replicas[id] = one
}
