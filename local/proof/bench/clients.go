package main

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// The load of many clients. An answer has clientTokens tokens on average.
const (
	clientCount  = 64
	clientTokens = 64
)

// clientLoad is how often clients send requests: in each of rounds, each client sends requests, one
// after the other. token is the time of an engine for a token of each client; it spreads their first
// requests.
type clientLoad struct {
	token            time.Duration
	rounds, requests int
}

// generatorLoad is for a generator, which sends a token to each client as a model on a GPU does.
var generatorLoad = clientLoad{20 * time.Millisecond, 5, 3}

// answers are the answers that all clients of a target have got.
type answers struct {
	name, url, model string
	// tokens is the number of their tokens, took the time for them.
	tokens int
	took   time.Duration
	// first are the times to the first token, burst those of requests that began at the same time.
	first, burst []time.Duration
	// fails: requests may fail, because a proxy of others refuses or resets some. failed counts them.
	fails  bool
	failed int
}

// rate returns the tokens of all clients in a second.
func (a *answers) rate() float64 { return float64(a.tokens) / a.took.Seconds() }

// measureClients measures the overhead for many clients of a generator with the protocol of vLLM.
func measureClients(ctx context.Context, t *table) error {
	g, err := startGenerated(platform.EngineVLLM, generatorLoad.token, clientCount)
	if err != nil {
		return err
	}
	defer g.end()
	reverse, err := startPart("proxy", g.engine.url())
	if err != nil {
		return err
	}
	defer func() { _ = reverse.end() }()
	address, err := reverse.line()
	if err != nil {
		return err
	}
	return compareClients(ctx, t, inferenceName, generatorLoad, []*answers{
		{name: "the engine", url: g.engine.url(), model: mockModel},
		{name: "reverse proxy", url: "http://" + address, model: mockModel},
		{name: "Sortie", url: g.url, model: mockModel},
	})
}

// compareClients lets many clients send requests to each target in turn. The first target is the
// engine.
func compareClients(ctx context.Context, t *table, what string, load clientLoad, targets []*answers) error {
	for round := range load.rounds + 1 {
		for _, each := range targets {
			if err := each.burstOf(ctx, round > 0); err != nil {
				return fmt.Errorf("%s: %w", each.name, err)
			}
			if err := each.load(ctx, load, round > 0); err != nil { // the first round opens connections
				return fmt.Errorf("%s: %w", each.name, err)
			}
		}
	}
	engine := targets[0]
	t.add(what, fmt.Sprintf("%d clients of the engine alone: tokens, first token p50 / p99", clientCount), "%.0f/s, %.1f / %.1f ms",
		engine.rate(), millis(percentile(engine.first, 0.5)), millis(percentile(engine.first, 0.99)))
	for _, each := range targets[1:] {
		t.add(what, fmt.Sprintf("%d clients of %s: share of the tokens, first token p50 / p99 above it, all at the same time", clientCount, each.name),
			"%.1f %%, %.1f / %.1f ms, %.1f / %.1f ms", 100*each.rate()/engine.rate(),
			millis(percentile(each.first, 0.5)-percentile(engine.first, 0.5)), millis(percentile(each.first, 0.99)-percentile(engine.first, 0.99)),
			millis(percentile(each.burst, 0.5)-percentile(engine.burst, 0.5)), millis(percentile(each.burst, 0.99)-percentile(engine.burst, 0.99)))
		if each.failed > 0 {
			t.add(what, "failed requests by "+each.name, "%d", each.failed)
		}
	}
	return nil
}

// burstOf sends the first requests of all clients at the same time.
func (a *answers) burstOf(ctx context.Context, keep bool) error {
	var mu sync.Mutex
	return inParallel(clientCount, func() error {
		first, err := a.one(ctx, 4)
		mu.Lock()
		defer mu.Unlock()
		if err == nil && keep {
			a.burst = append(a.burst, first)
		}
		return a.counted(err)
	})
}

// load lets each client send its requests one after the other. The clients begin one after the
// other, within the time of an answer.
func (a *answers) load(ctx context.Context, of clientLoad, keep bool) error {
	var mu sync.Mutex
	clients := make(chan int, clientCount)
	for i := range clientCount {
		clients <- i
	}
	began, tokens := time.Now(), 0
	var times []time.Duration
	err := inParallel(clientCount, func() error {
		i := <-clients
		pause(of.token * clientTokens * time.Duration(i) / clientCount)
		for k := range of.requests {
			n := clientTokens/2 + 1 + (37*i+23*k)%clientTokens
			first, err := a.one(ctx, n)
			mu.Lock()
			if err == nil {
				times, tokens = append(times, first), tokens+n
			}
			err = a.counted(err)
			mu.Unlock()
			if err != nil {
				return err
			}
		}
		return nil
	})
	if keep {
		a.took += time.Since(began)
		a.first, a.tokens = append(a.first, times...), a.tokens+tokens
	}
	return err
}

// counted counts a request that has failed, and returns its error unless requests may fail.
func (a *answers) counted(err error) error {
	if err != nil && a.fails {
		a.failed++
		return nil
	}
	return err
}

var atLimit = []byte(`"finish_reason":"length"`)

// one reads an answer of n tokens, and returns the time to its first token. The pieces of a stream
// may have several tokens, so only the reason of the end shows that all have come.
func (a *answers) one(ctx context.Context, n int) (first time.Duration, err error) {
	began := time.Now()
	s, err := openAnswer(ctx, a.url, a.model, n)
	if err != nil {
		return 0, err
	}
	defer s.close()
	if !s.next() {
		return 0, fmt.Errorf("%s ended before its first token: %w", a.url, s.lines.Err())
	}
	first = time.Since(began)
	whole := bytes.Contains(s.lines.Bytes(), atLimit)
	for s.lines.Scan() {
		whole = whole || bytes.Contains(s.lines.Bytes(), atLimit)
	}
	if err := s.lines.Err(); err != nil || !whole {
		return 0, fmt.Errorf("%s did not send %d tokens: %w", a.url, n, err)
	}
	return first, nil
}
