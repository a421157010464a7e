package container

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/netip"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/moby/moby/client"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// engine is a connected container engine.
type engine struct {
	api     *client.Client
	address string
	route   Route
	// cpus is the number of CPUs of the engine's host; 0 if it is unknown.
	cpus int
	// init means that the engine has a program that forwards signals to the program of the
	// image.
	init bool
	// swap means that the engine can limit swap.
	swap bool
}

// podmanHeader is in every response of Podman.
const podmanHeader = "Libpod-Api-Version"

// connectLimit is the timeout for the first response of an engine.
const connectLimit = 15 * time.Second

// connected returns the engine. It searches for one at the first call, and again at each call
// until it finds one. Faults: Image if there is no engine. Unavailable if an engine does not
// respond in time, or if the one named by the environment does not respond at all.
func (r *Runner) connected(ctx context.Context) (*engine, error) {
	select {
	case r.connecting <- struct{}{}:
		defer func() { <-r.connecting }()
	case <-ctx.Done():
		return nil, fault.Wrap(ctx.Err(), fault.Unavailable, "the container engine did not answer in time")
	}
	if r.life.Err() != nil {
		return nil, fault.New(fault.Unavailable, "this Sortie is stopping")
	}
	if r.engine != nil {
		return r.engine, nil
	}
	var failed []error
	for _, address := range r.cfg.Addresses.Tried {
		e, err := r.connect(ctx, address)
		if err == nil {
			r.engine = e
			r.cfg.Log.InfoContext(ctx, "found a container engine", "address", address)
			return e, nil
		}
		failed = append(failed, err)
	}
	if ctx.Err() != nil {
		return nil, fault.Wrap(ctx.Err(), fault.Unavailable, "the container engine did not answer in time")
	}
	cause := errors.Join(failed...)
	if f, ok := errors.AsType[*fault.Fault](cause); ok {
		return nil, f
	}
	if name := r.cfg.Addresses.Variable; name != "" {
		return nil, fault.Wrap(cause, fault.Unavailable, "the container engine at %s (%s) does not answer: %s", r.cfg.Addresses.Tried[0], name, words(cause))
	}
	if errors.Is(cause, context.DeadlineExceeded) {
		return nil, fault.Wrap(cause, fault.Unavailable, "the container engine does not answer%s", refusals(failed))
	}
	none := fault.Wrap(cause, fault.Image, "no container engine: %s and %s are not set, and no engine answers at %s%s. Start Docker or Podman (systemctl start podman.socket), or bind the image to a program with --image NAME=PROGRAM",
		dockerHost, podmanHost, strings.ReplaceAll(strings.Join(r.cfg.Addresses.Tried, ", "), "unix://", ""), refusals(failed))
	none.Retryable = false // a machine of the run cannot change it, but a pool with another runner can
	return nil, none
}

// refusals returns the errors of engines that exist and cannot be used.
func refusals(failed []error) string {
	var text strings.Builder
	for _, err := range failed {
		if !errors.Is(err, fs.ErrNotExist) {
			text.WriteString("; " + words(err))
		}
	}
	return text.String()
}

// connect connects to an engine and reads its properties. It returns a fault if the engine
// responds and cannot be used.
func (r *Runner) connect(ctx context.Context, address string) (_ *engine, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	var podman atomic.Bool
	options := []client.Opt{client.WithHost(address), client.WithUserAgent("sortie"), client.WithHTTPResponseHook(func(answer *http.Response) {
		port.CountCall(answer.Request.Context(), platform.RunnerContainer)
		if answer.Header.Get(podmanHeader) != "" {
			podman.Store(true)
		}
	})}
	if folder := r.cfg.Addresses.Certificates; folder != "" && !strings.HasPrefix(address, "unix:") {
		options = append(options, client.WithTLSClientConfig(filepath.Join(folder, "ca.pem"), filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")))
	}
	api, err := client.New(options...)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, api.Close())
		}
	}()
	if _, err := api.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true}); err != nil {
		return nil, err
	}
	answer, err := api.Info(ctx, client.InfoOptions{})
	if err != nil {
		return nil, err
	}
	info := answer.Info
	e := &engine{api: api, address: address, cpus: info.NCPU, init: info.InitBinary != "", swap: info.SwapLimit}
	if r.cfg.Join == nil {
		return e, nil
	}
	at := Place{Rootless: slices.ContainsFunc(info.SecurityOptions, func(o string) bool { return strings.HasPrefix(o, "name=rootless") })}
	at.Podman = podman.Load()
	at.Machine = runtime.GOOS != "linux" || info.OperatingSystem == "Docker Desktop"
	if at.HostName = "host.docker.internal"; at.Podman {
		at.HostName = "host.containers.internal"
	}
	if !at.Machine && !at.Rootless {
		at.Gateway = r.gateway(ctx, api)
	}
	if e.route, err = r.cfg.Join(ctx, at); err != nil {
		return nil, fault.Wrap(err, fault.LaunchRefused, "containers cannot reach this Sortie: %v", err)
	}
	return e, nil
}

// gateway returns the address of the host in the engine's default network, or an invalid
// address if it is unknown.
func (r *Runner) gateway(ctx context.Context, api *client.Client) netip.Addr {
	found, err := api.NetworkInspect(ctx, defaultNetwork, client.NetworkInspectOptions{})
	if err != nil {
		r.cfg.Log.WarnContext(ctx, "cannot read the container engine's default network", "error", err.Error())
		return netip.Addr{}
	}
	for _, config := range found.Network.IPAM.Config {
		if config.Gateway.Is4() {
			return config.Gateway
		}
	}
	return netip.Addr{}
}

// defaultNetwork is the default network of Docker. Podman uses the name for its own.
const defaultNetwork = "bridge"
