package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/sortie-dev/sortie/local/proof/engines/servers"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// target is a proxy with the measured times to the first token through it.
type target struct {
	name, url string
	times     []time.Duration
}

// afterAnswer is the pause before the next round. LiteLLM is the last in a round and still
// works for some time after its answer.
const afterAnswer = 50 * time.Millisecond

// measureProxies sends requests to an inference server without a model, in turns through Go's
// reverse proxy, the router of vLLM, LiteLLM and Sortie. It compares the times until the first
// token. Only Sortie stores the task before it asks the server, and each token before it sends
// it. It runs only if named, because it installs the proxies (Python, half a minute).
func measureProxies(ctx context.Context, t *table) error {
	installed, err := servers.InstallProxies(ctx, os.Environ(), func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, format+"\n", args...)
	})
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "sortie-proxies-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	var started []*servers.Server
	defer func() {
		for _, s := range started {
			s.Kill()
		}
	}()
	g, err := startGenerated(0, tokenStreams)
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
	targets := []*target{{name: "reverse proxy", url: "http://" + address}, {name: "Sortie", url: g.url}}
	for _, kind := range []servers.ProxyKind{servers.ProxyVLLMRouter, servers.ProxyLiteLLM} {
		s, err := installed.Start(ctx, kind, g.engine.url(), "mock", folder)
		if err != nil {
			return err
		}
		started = append(started, s)
		targets = append(targets, &target{name: string(kind), url: s.URL})
	}
	for i := range firstTokens + 20 {
		if err := clock.Sleep(ctx, clock.System{}, afterAnswer); err != nil {
			return err
		}
		for _, each := range targets {
			took, err := toFirstToken(ctx, each.url)
			if err != nil {
				return fmt.Errorf("%s: %w", each.name, err)
			}
			if i >= 20 { // the first requests open connections
				each.times = append(each.times, took)
			}
		}
	}
	for _, each := range targets {
		t.add("proxies", "to the first token by "+each.name+", p50 / p99", "%.1f / %.1f ms",
			millis(percentile(each.times, 0.5)), millis(percentile(each.times, 0.99)))
	}
	return nil
}
