package starts

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sortie-dev/sortie/shared/app/setting"
	"github.com/sortie-dev/sortie/shared/domain/platform"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Case is one row of the table.
type Case struct {
	// Arrivals describes the arrival of Runs. Each arrives Gap after the previous one; with 0,
	// all arrive at the same time. With Sequential, each arrives when the previous one has
	// started.
	Arrivals   string
	Runs       int
	Gap        time.Duration
	Sequential bool
	// Apps is the number of the pool's apps. Warm means that one warm machine per run, at most
	// platform.MostWarm, is ready before the first run.
	Apps int
	Warm bool
}

// Cases lists the rows.
func Cases() (all []Case) {
	arrivals := []Case{
		{Arrivals: "sequential", Runs: 30, Sequential: true},
		{Arrivals: "200 ms apart", Runs: 150, Gap: 200 * time.Millisecond},
		{Arrivals: "burst of 10", Runs: 10},
		{Arrivals: "burst of 100", Runs: 100},
		{Arrivals: "burst of 1,000", Runs: 1000},
	}
	for _, warm := range []bool{false, true} {
		for _, apps := range []int{1, 4, 17} {
			for _, c := range arrivals {
				c.Apps, c.Warm = apps, warm
				all = append(all, c)
			}
		}
	}
	return all
}

// Name returns the name of the row.
func (c Case) Name() string {
	kind := "cold"
	if c.Warm {
		kind = "warm"
	}
	apps := "1 app"
	if c.Apps > 1 {
		apps = fmt.Sprintf("%d apps", c.Apps)
	}
	return fmt.Sprintf("starts, %s, %s, %s", c.Arrivals, kind, apps)
}

// Result has the figures of a case.
type Result struct {
	Case Case
	// P50 to Last are times from the accepted request to the accepted call started.
	P50, P95, P99, Last time.Duration
	// Failures counts the runs that did not start or needed a second attempt.
	Failures int
	// Queue to Worker are the means of consecutive phases. Queue ends with the call that starts
	// the machine, and API with its answer, which on Fly includes placement and image. Boot
	// ends when the program runs, and Worker when its call started is accepted.
	Queue, API, Boot, Worker time.Duration
	// Calls counts the calls of the machines API, Refused its 429 answers, and OtherRefusals
	// its other refusals.
	Calls, Refused, OtherRefusals int
	// Created counts the machines. Wasted counts those that ran no program and are not kept.
	Created, Wasted int
	// OnWarm counts the runs that started on a warm machine.
	OnWarm int
}

// RefusedPercent returns the percentage of calls that the machines API refused because of its
// rate limits.
func (r Result) RefusedPercent() float64 { return 100 * float64(r.Refused) / float64(max(r.Calls, 1)) }

// patience limits the time until the last run starts.
const patience = time.Hour

// Measure measures a case in its own bubble.
func Measure(t *testing.T, c Case) (result Result) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		apps := make([]string, c.Apps)
		for i := range apps {
			apps[i] = fmt.Sprintf("app-%02d", i+1)
		}
		w, err := open(t.Context(), dir, apps)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := w.close(); err != nil {
				t.Error(err)
			}
		}()
		if err := w.definePool(c, apps); err != nil {
			t.Error(err)
			return
		}
		before := w.counted()
		if err := w.arrive(c); err != nil {
			t.Error(err)
			return
		}
		result = w.result(c, before)
	})
	return result
}

// definePool stores the pool and waits until its warm machines are ready.
func (w *world) definePool(c Case, apps []string) error {
	limit := 0
	definition := contract.PoolDefinition{Runner: platform.RunnerFly, Settings: &contract.PoolSettings{Apps: apps}, Limit: &limit}
	ready := 0
	if c.Warm {
		ready = min(c.Runs, platform.MostWarm)
		definition.Warm = &contract.PoolWarm{Min: ready, Max: ready}
	}
	body, err := json.Marshal(definition)
	if err != nil {
		return err
	}
	if status, answer := w.call(http.MethodPut, publicURL+"/v1/pools/default", "", string(body)); status >= http.StatusMultipleChoices {
		return fmt.Errorf("cannot store the pool: %d %.300s", status, answer)
	}
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(time.Second) {
		health, err := w.health()
		if err != nil || health.WarmMachines.Ready == ready {
			time.Sleep(10 * time.Second) // until the platform's rate limits have recovered
			return err
		}
	}
	return fmt.Errorf("the pool has not %d warm machines after %s", ready, patience)
}

func (w *world) health() (h contract.PoolHealth, err error) {
	status, answer := w.call(http.MethodGet, publicURL+"/v1/pools/default/health", "", "")
	if status != http.StatusOK {
		return h, fmt.Errorf("cannot read the health of the pool: %d %.300s", status, answer)
	}
	return h, json.Unmarshal(answer, &h)
}

// arrive submits the runs and waits until all have started or patience has passed. Runs of a
// burst are submitted concurrently.
func (w *world) arrive(c Case) error {
	refused := make(chan error, c.Runs)
	for i := range c.Runs {
		if i > 0 && c.Gap > 0 {
			time.Sleep(c.Gap)
		}
		go func() { refused <- w.submit() }()
		if c.Sequential {
			w.await(i + 1)
		}
	}
	var all []error
	for range c.Runs {
		all = append(all, <-refused)
	}
	if err := errors.Join(all...); err != nil {
		return err
	}
	w.await(c.Runs)
	return nil
}

func (w *world) submit() error {
	at := time.Now()
	status, answer := w.call(http.MethodPost, publicURL+"/v1/runs", "", fmt.Sprintf(`{"image":%q}`, service.DefaultImage))
	var accepted contract.RunAccepted
	err := json.Unmarshal(answer, &accepted)
	if status != http.StatusAccepted || err != nil {
		return fmt.Errorf("a run was not accepted: %d %.300s: %w", status, answer, err)
	}
	w.marks.set(accepted.TaskID, func(m *mark) { m.accepted = at })
	return nil
}

func (w *world) await(started int) {
	for until := time.Now().Add(patience); w.marks.started() < started && time.Now().Before(until); {
		time.Sleep(50 * time.Millisecond)
	}
}

// counts are counters of the platform.
type counts struct{ all, refused, other, created int64 }

func (w *world) counted() counts {
	return counts{w.calls.all.Load(), w.calls.refused.Load(), w.calls.other.Load(), w.calls.creations.Load()}
}

func (w *world) result(c Case, before counts) Result {
	after := w.counted()
	r := Result{
		Case: c, Calls: int(after.all - before.all), Refused: int(after.refused - before.refused),
		OtherRefusals: int(after.other - before.other), Created: int(after.created),
	}
	if health, err := w.health(); err == nil {
		r.Wasted = r.Created - c.Runs - health.WarmMachines.Ready
	}
	w.marks.mu.Lock()
	defer w.marks.mu.Unlock()
	var all []time.Duration
	for _, m := range w.marks.tasks {
		if m.started.IsZero() || m.again {
			r.Failures++
		}
		if m.started.IsZero() {
			continue
		}
		all = append(all, m.started.Sub(m.accepted))
		r.Queue += m.called.Sub(m.accepted)
		r.API += m.answered.Sub(m.called)
		r.Boot += m.program.Sub(m.answered)
		r.Worker += m.started.Sub(m.program)
		if m.warm {
			r.OnWarm++
		}
	}
	slices.Sort(all)
	if n := len(all); n > 0 {
		at := func(p float64) time.Duration { return all[min(int(float64(n)*p), n-1)] }
		r.P50, r.P95, r.P99, r.Last = at(0.5), at(0.95), at(0.99), all[n-1]
		count := time.Duration(n)
		r.Queue, r.API, r.Boot, r.Worker = r.Queue/count, r.API/count, r.Boot/count, r.Worker/count
	}
	return r
}
