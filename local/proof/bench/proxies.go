package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/sortie-dev/sortie/local/proof/engines/servers"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// target is a proxy with the measured times to the first token through it.
type target struct {
	name, url string
	times     []time.Duration
}

// afterAnswer is the pause before the next round. LiteLLM is the last in a round and still
// works for some time after its answer.
const afterAnswer = 50 * time.Millisecond

// measureProxies sends requests to an inference server, in turns through Go's reverse proxy, the
// router of vLLM, LiteLLM and Sortie. It compares the times until the first token of one client, and
// the tokens and times of many clients: of a generator, and of vLLM on the processor. Only Sortie
// stores the task before it asks the server, and each token before it sends it. It runs only if
// named, because it installs the proxies and vLLM (Python, minutes).
func measureProxies(ctx context.Context, t *table) error {
	say := func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
	installed, err := servers.InstallProxies(ctx, os.Environ(), say)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "sortie-proxies-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if err := oneClient(ctx, t, installed, folder); err != nil {
		return err
	}
	g, err := startGenerated(platform.EngineVLLM, generatorLoad.token, clientCount)
	if err != nil {
		return err
	}
	err = manyClients(ctx, t, "proxies", installed, folder, generatorLoad, &answers{name: "the engine", url: g.engine.url(), model: mockModel}, g.url)
	g.end()
	if err != nil {
		return err
	}
	if err := clientsOfVLLM(ctx, t, installed, folder, say); err != nil { // the other figures stay
		t.add("proxies of vLLM", "not measured", "%v", err)
	}
	return nil
}

// vllmLoad is for vLLM on two cores.
var vllmLoad = clientLoad{100 * time.Millisecond, 2, 2}

// clientsOfVLLM compares the proxies in front of vLLM on the processor. The server, the proxies and
// the clients share its cores.
func clientsOfVLLM(ctx context.Context, t *table, installed *servers.Proxies, folder string, say func(string, ...any)) error {
	vllm, err := servers.Install(ctx, platform.EngineVLLM, os.Environ(), say)
	if err != nil {
		return err
	}
	server, err := vllm.Start(ctx, servers.Options{Folder: folder, Slots: clientCount})
	if err != nil {
		return err
	}
	defer server.Kill()
	c, addresses, err := startStack("-engine", server.URL, "-engine-kind", string(platform.EngineVLLM))
	if err != nil {
		return err
	}
	defer func() { _ = c.end() }()
	return manyClients(ctx, t, "proxies of vLLM", installed, folder, vllmLoad, &answers{name: "the engine", url: server.URL, model: server.Model}, addresses.URL)
}

// manyClients compares an engine, the proxies in front of it, and Sortie at url.
func manyClients(
	ctx context.Context, t *table, what string, installed *servers.Proxies, folder string, load clientLoad, engine *answers, url string,
) error {
	fronts, end, err := startFronts(ctx, installed, engine.url, engine.model, folder)
	defer end()
	if err != nil {
		return err
	}
	targets := []*answers{engine, {name: "Sortie", url: url, model: engine.model}}
	for _, each := range fronts {
		targets = append(targets, &answers{name: each.name, url: each.url, model: engine.model, fails: true})
	}
	return compareClients(ctx, t, what, load, targets)
}

// startFronts starts the proxies of others in front of an inference server. The caller calls end
// also after an error.
func startFronts(ctx context.Context, installed *servers.Proxies, url, model, folder string) (fronts []*target, end func(), err error) {
	var ends []func()
	end = func() {
		for _, each := range ends {
			each()
		}
	}
	reverse, err := startPart("proxy", url)
	if err != nil {
		return nil, end, err
	}
	ends = append(ends, func() { _ = reverse.end() })
	address, err := reverse.line()
	if err != nil {
		return nil, end, err
	}
	fronts = []*target{{name: "reverse proxy", url: "http://" + address}}
	for _, kind := range []servers.ProxyKind{servers.ProxyVLLMRouter, servers.ProxyLiteLLM} {
		s, err := installed.Start(ctx, kind, url, model, folder)
		if err != nil {
			return nil, end, err
		}
		ends = append(ends, s.Kill)
		fronts = append(fronts, &target{name: string(kind), url: s.URL})
	}
	return fronts, end, nil
}

// oneClient compares the times to the first token of one client of a generator.
func oneClient(ctx context.Context, t *table, installed *servers.Proxies, folder string) error {
	g, err := startGenerated(platform.EngineLlamaCpp, 0, tokenStreams)
	if err != nil {
		return err
	}
	defer g.end()
	fronts, end, err := startFronts(ctx, installed, g.engine.url(), mockModel, folder)
	defer end()
	if err != nil {
		return err
	}
	targets := append([]*target{fronts[0], {name: "Sortie", url: g.url}}, fronts[1:]...)
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
