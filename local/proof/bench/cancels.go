package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// cancelGrace is the workers' cancel grace.
const cancelGrace = 2 * time.Second

// measureCancels cancels runs whose workers are real processes, ten concurrently. It measures
// the time until the run has ended, which is when Sortie sees its machine gone.
func measureCancels(ctx context.Context, t *table) error {
	for _, kind := range []struct {
		name, work string
		grace      time.Duration
	}{
		{"whose worker reports the cancel", "listen", 0},
		{"whose worker only exits on SIGTERM", "wait", 0},
		{"whose worker ignores SIGTERM, after the grace", "deaf", cancelGrace},
	} {
		took, err := cancelMany(ctx, kind.work, 100)
		if err != nil {
			return err
		}
		t.add("cancel to machine gone", "of a run "+kind.name+", p50 / p99", "%.0f / %.0f ms",
			millis(percentile(took, 0.5)-kind.grace), millis(percentile(took, 0.99)-kind.grace))
	}
	return nil
}

func cancelMany(ctx context.Context, what string, runs int) ([]time.Duration, error) {
	const together = 10
	c, addresses, err := startStack("-work", what, "-grace", cancelGrace.String())
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.end() }()
	took := make([]time.Duration, runs)
	var group sync.WaitGroup
	var mu sync.Mutex
	var failure error
	for i := range together {
		group.Go(func() {
			for n := i; n < runs; n += together {
				var err error
				if took[n], err = cancelOne(ctx, addresses.URL, what); err != nil {
					mu.Lock()
					failure = err
					mu.Unlock()
					return
				}
			}
		})
	}
	group.Wait()
	return took, failure
}

// cancelOne cancels a run shortly after it is Running. If its worker calls started, it waits
// for that call first.
func cancelOne(ctx context.Context, url, what string) (time.Duration, error) {
	s, err := export(ctx, url)
	for err == nil {
		var task contract.Task
		err = request(ctx, http.MethodGet, url+"/v1/tasks/"+s.TaskID, "", &task)
		if task.State == "Running" && (what != "listen" || task.Worker != nil) {
			break
		}
		pause(20 * time.Millisecond)
	}
	if err != nil {
		return 0, err
	}
	pause(200 * time.Millisecond) // a new process needs a while to install its signal handlers
	startedAt := time.Now()
	var answer contract.CancelAnswer
	if err := request(ctx, http.MethodPost, url+"/v1/tasks/"+s.TaskID+"/cancel", `{}`, &answer); err != nil {
		return 0, err
	}
	for s.Status = "processing"; err == nil && s.Status == "processing"; {
		err = request(ctx, http.MethodGet, url+"/status/"+s.TaskID+"?wait=20", "", &s)
	}
	return time.Since(startedAt), err
}

// listen is a worker that calls started with handlesSigterm. On SIGTERM it calls completed.
func listen() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var e contract.TaskEnvelope
	if err := json.Unmarshal([]byte(os.Getenv(contract.EnvelopeVariable)), &e); err != nil {
		return failed(err)
	}
	name := strconv.Quote(e.TaskID)
	if err := callTask(context.Background(), e, "started", fmt.Sprintf(`{"attempt":%d,"workerId":%s,"handlesSigterm":true}`, e.Attempt, name)); err != nil {
		return failed(err)
	}
	<-ctx.Done()
	if err := callTask(context.Background(), e, "completed", fmt.Sprintf(`{"attempt":%d,"workerId":%s,"outcome":"CANCELLED"}`, e.Attempt, name)); err != nil {
		return failed(err)
	}
	return 0
}

// deaf is a worker that ignores SIGTERM.
func deaf() {
	signal.Ignore(syscall.SIGTERM)
	<-make(chan os.Signal)
}

// measureSimulation runs simulations on all cores.
func measureSimulation(ctx context.Context, t *table) error {
	const seeds = 400
	next := make(chan uint64)
	var group sync.WaitGroup
	var mu sync.Mutex
	var failure error
	startedAt := time.Now()
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for seed := range next {
				if _, err := simulation.Run(ctx, seed); err != nil {
					mu.Lock()
					failure = err
					mu.Unlock()
				}
			}
		})
	}
	for seed := range uint64(seeds) {
		next <- seed
	}
	close(next)
	group.Wait()
	t.add("simulation", "seeds per second, all cores", "%.1f", seeds/time.Since(startedAt).Seconds())
	return failure
}
