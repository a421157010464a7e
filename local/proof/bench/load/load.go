package load

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Case is a load.
type Case struct {
	// Rate is the number of runs that clients submit each second, for For. Half of them are of
	// the first tenant, the others of the other tenants.
	Rate    int
	For     time.Duration
	Tenants int
	// Work is how long each program works, with heartbeats each 30 s.
	Work time.Duration
}

// Name returns the name of the case.
func (c Case) Name() string {
	return fmt.Sprintf("AWS, %d runs/s for %s, %s each, %d tenants", c.Rate, c.For, c.Work, c.Tenants)
}

// Cases returns the loads that are measured: the goal of 100 runs/s, twice as much, and 30,000
// living runs with heartbeats.
func Cases() []Case {
	return []Case{
		{Rate: 50, For: time.Minute, Tenants: 8, Work: 10 * time.Second},
		{Rate: 100, For: 5 * time.Minute, Tenants: 8, Work: 10 * time.Second},
		{Rate: 200, For: time.Minute, Tenants: 8, Work: 10 * time.Second},
		{Rate: 100, For: 5 * time.Minute, Tenants: 8, Work: 5 * time.Minute},
	}
}

// Living returns the load of 100,000 living runs, which takes an hour of CPU.
func Living() Case {
	return Case{Rate: 100, For: 1000 * time.Second, Tenants: 8, Work: 1100 * time.Second}
}

// Result has the figures of a case.
type Result struct {
	Case Case
	// Runs counts the accepted runs, Refused the refused submissions. Failed counts the runs
	// that did not complete within patience, Again those that needed a second attempt.
	Runs, Refused, Failed, Again int
	// PostP50 and PostP99 are times until the acceptance. StartP50 to StartLast are times from
	// there to the accepted start of the worker; SmallP99 is that of the smaller tenants.
	PostP50, PostP99, StartP50, StartP99, StartLast, SmallP99 time.Duration
	// EndP99 is the time from the report of the end to the final state.
	EndP99 time.Duration
	// Calls counts the calls of services by operation, Refusals the refused ones by operation
	// and reason.
	Calls, Refusals map[string]int
	// FunctionCalls, FunctionPeak, FunctionRefusals and ColdStarts are those of Lambda.
	FunctionCalls, FunctionPeak, FunctionRefusals, ColdStarts int
	// Units is the largest number of write units in a second.
	Units float64
	// SweepLast is the longest sweep.
	SweepLast time.Duration
}

// patience limits the time until the last run has ended.
const patience = 30 * time.Minute

// Measure measures a case in its own bubble.
func Measure(t *testing.T, c Case) (result Result) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w, err := open(t.Context(), dir, c)
		if err != nil {
			t.Fatal(err)
		}
		defer w.close()
		w.submitAll(c)
		w.await()
		result = w.summary(c)
	})
	return result
}

// summary returns the figures.
func (w *world) summary(c Case) Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.result
	r.Case = c
	var posts, starts, small, ends []time.Duration
	for _, m := range w.marks {
		posts = append(posts, m.accepted.Sub(m.asked))
		r.Runs++
		if m.attempts > 1 {
			r.Again++
		}
		if m.ended.IsZero() {
			r.Failed++
			continue
		}
		starts, ends = append(starts, m.started.Sub(m.accepted)), append(ends, m.ended.Sub(m.reported))
		if m.tenant > 0 {
			small = append(small, m.started.Sub(m.accepted))
		}
	}
	for _, units := range w.units {
		r.Units = max(r.Units, units)
	}
	r.PostP50, r.PostP99 = percentile(posts, 0.5), percentile(posts, 0.99)
	r.StartP50, r.StartP99, r.StartLast = percentile(starts, 0.5), percentile(starts, 0.99), percentile(starts, 1)
	r.SmallP99, r.EndP99 = percentile(small, 0.99), percentile(ends, 0.99)
	return r
}

func percentile(list []time.Duration, p float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[min(int(float64(len(list))*p), len(list)-1)]
}
