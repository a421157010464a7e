package relays

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Case is one measured load.
type Case struct {
	// Lanes is the number of concurrent functions. Rate is the number of events per second of
	// all tenants.
	Lanes, Rate, Tenants int
	// For is the duration of the load.
	For time.Duration
	// Deaths is the number of functions that die during a call, at any step.
	Deaths int
}

// Cases returns all measured cases.
func Cases() []Case {
	return []Case{
		{Lanes: 2, Rate: 20, Tenants: 1, For: 20 * time.Second},
		{Lanes: 8, Rate: 200, Tenants: 1, For: 20 * time.Second},
		{Lanes: 16, Rate: 1000, Tenants: 1, For: 20 * time.Second},
		{Lanes: 32, Rate: 1000, Tenants: 1, For: 20 * time.Second},
		{Lanes: 16, Rate: 1000, Tenants: 100, For: 20 * time.Second},
		{Lanes: 16, Rate: 1000, Tenants: 1, For: 20 * time.Second, Deaths: 6},
	}
}

// Name returns the name of the case.
func (c Case) Name() string {
	name := fmt.Sprintf("relay, %d lanes, %d events a second of %d tenants", c.Lanes, c.Rate, c.Tenants)
	if c.Deaths > 0 {
		name += fmt.Sprintf(", %d deaths", c.Deaths)
	}
	return name
}

// Result has the figures of a case.
type Result struct {
	Case Case
	// Events is the number of events. All of them are in their streams.
	Events int
	// P50 to Last are times from the commit of an event to its append.
	P50, P99, Last time.Duration
	// Transactions counts the transaction requests, and Refused the failed ones. Throttled
	// counts the requests and items beyond the throughput of a partition key.
	Transactions, Refused, Throttled int
	// SteadyTransactions and SteadyRefused exclude the first second, in which the processes
	// start and do not know of each other.
	SteadyTransactions, SteadyRefused int
	// Writes counts the requests that write a single item, and RefusedWrites the failed ones.
	Writes, RefusedWrites int
	// Units are the consumed write units, and Reads the read units.
	Units, Reads float64
	// Published counts the messages on the bus, and Wakes the queued webhooks.
	Published, Wakes int
	// BusLast is the longest time from the commit of an event to its first message on the bus.
	BusLast time.Duration
}

// RefusedPercent returns the percentage of failed transactions.
func (r Result) RefusedPercent() float64 {
	return 100 * float64(r.Refused) / float64(max(r.Transactions, 1))
}

// SteadyPercent is RefusedPercent without the first second.
func (r Result) SteadyPercent() float64 {
	return 100 * float64(r.SteadyRefused) / float64(max(r.SteadyTransactions, 1))
}

// Copies returns the average number of messages per event on the bus.
func (r Result) Copies() float64 { return float64(r.Published) / float64(max(r.Events, 1)) }

// Measure measures a case in its own bubble. It fails the test if an event is lost or stored
// twice, if positions have gaps, or if the events of a run are out of order.
func Measure(t *testing.T, c Case) (result Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, err := open(t, c)
		if err != nil {
			t.Fatal(err)
		}
		w.play()
		w.sweep()
		w.check()
		result = w.result()
	})
	return result
}

func (w *world) result() Result {
	r := w.counted
	r.Case, r.Events = w.Case, len(w.committed)
	r.Throttled = w.db.Throttled()
	slices.Sort(w.latencies)
	at := func(p float64) time.Duration {
		if len(w.latencies) == 0 {
			return 0
		}
		return w.latencies[min(int(float64(len(w.latencies))*p), len(w.latencies)-1)]
	}
	r.P50, r.P99, r.Last = at(0.5), at(0.99), at(1)
	return r
}
