package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"
)

// The load of the measurement: each completed run causes one event per webhook.
const (
	hookReceivers = 100 // healthy webhooks
	hookHanging   = 50  // webhooks whose receivers do not answer
	hookRuns      = 12  // runs per second
	hookSeconds   = 10
)

// measureWebhooks delivers 1,200 events a second to healthy receivers, first alone and then
// with additional receivers that hang.
func measureWebhooks(ctx context.Context, t *table) error {
	c, addresses, err := startStack("-runner", "goroutine", "-hooks")
	if err != nil {
		return err
	}
	defer func() { _ = c.end() }()
	healthy := &hookGroup{}
	server := httptest.NewServer(healthy)
	defer server.Close()
	for range hookReceivers {
		if err := createHook(ctx, addresses.URL, server.URL); err != nil {
			return err
		}
	}
	if err := healthy.load(ctx, addresses.URL, hookSeconds/5); err != nil { // a warm-up
		return err
	}
	name := fmt.Sprintf("webhooks, %d events/s to %d receivers", hookRuns*hookReceivers, hookReceivers)
	alone, err := healthy.measure(ctx, t, addresses.URL, name, "alone")
	if err != nil {
		return err
	}
	release := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer hanging.Close()
	defer close(release) // before the close of the server, which waits for its requests
	for range hookHanging {
		if err := createHook(ctx, addresses.URL, hanging.URL); err != nil {
			return err
		}
	}
	beside, err := healthy.measure(ctx, t, addresses.URL, name, fmt.Sprintf("beside %d receivers that hang", hookHanging))
	if err != nil {
		return err
	}
	t.add(name, "p99 beside those that hang, relative to p99 alone", "%.2f", beside.Seconds()/alone.Seconds())
	return nil
}

// measure adds the figures of the load and returns the p99 of its delays.
func (g *hookGroup) measure(ctx context.Context, t *table, url, name, beside string) (time.Duration, error) {
	startedAt := time.Now()
	if err := g.load(ctx, url, hookSeconds); err != nil {
		return 0, err
	}
	p99 := percentile(g.delays, 0.99)
	t.add(name, "deliveries/s, "+beside, "%.0f", float64(len(g.delays))/time.Since(startedAt).Seconds())
	t.add(name, "from the event to the receiver, p50 / p99, "+beside, "%.0f / %.0f ms", millis(percentile(g.delays, 0.5)), millis(p99))
	return p99, nil
}

// createHook creates a webhook for completed runs.
func createHook(ctx context.Context, url, receiver string) error {
	var created struct{ ID string }
	return request(ctx, http.MethodPost, url+"/v1/webhooks", fmt.Sprintf(`{"url":%q,"eventTypes":["job.completed"]}`, receiver), &created)
}

// hookGroup receives the events of all healthy webhooks.
type hookGroup struct {
	mu     sync.Mutex
	delays []time.Duration
}

// ServeHTTP receives an event.
func (g *hookGroup) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var e struct{ OccurredAt time.Time }
	if json.NewDecoder(r.Body).Decode(&e) != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.delays = append(g.delays, time.Since(e.OccurredAt))
}

// load generates the load for some seconds and waits for its deliveries.
func (g *hookGroup) load(ctx context.Context, url string, seconds int) error {
	g.mu.Lock()
	g.delays = nil
	g.mu.Unlock()
	ticker := time.NewTicker(time.Second / hookRuns)
	defer ticker.Stop()
	for range seconds * hookRuns {
		<-ticker.C
		if _, err := export(ctx, url); err != nil {
			return err
		}
	}
	want, limit := seconds*hookRuns*hookReceivers, time.After(time.Minute)
	for {
		g.mu.Lock()
		got := len(g.delays)
		g.mu.Unlock()
		if got >= want {
			return nil
		}
		select {
		case <-ticker.C:
		case <-limit:
			return fmt.Errorf("got %d deliveries within a minute, want %d", got, want)
		}
	}
}
