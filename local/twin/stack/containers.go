package stack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/container"
	"github.com/sortie-dev/sortie/shared/adapter/runner"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// containersFolder is the folder of the container records in a data folder.
const containersFolder = "containers"

// openContainers creates the runner of containers. It does nothing if no address is configured.
func (s *Stack) openContainers(context.Context) error {
	if len(s.config.Containers.Tried) == 0 {
		return nil
	}
	var err error
	s.containers, err = container.New(container.Config{
		Addresses: s.config.Containers, Cluster: s.memory.secret("containers", 6), Dir: filepath.Join(s.addresses.Data, containersFolder),
		Join: s.joinContainers, KeepFor: s.config.KeepMachines, Clock: s.clock, Log: s.config.Log,
	})
	return err
}

// joinContainers opens gates through which containers reach the parts on loopback, and returns
// their addresses. Rootless Podman containers join the host's network instead.
func (s *Stack) joinContainers(ctx context.Context, at container.Place) (container.Route, error) {
	listen, name := at.Gateway.String(), at.Gateway.String()
	switch {
	case at.Machine:
		listen, name = s.loopback, at.HostName
	case at.Rootless && at.Podman:
		return container.Route{Network: "host"}, nil
	case !at.Gateway.IsValid():
		return container.Route{}, errors.New("the engine's default network has no gateway of the host; give the pool another network, such as host")
	}
	route := container.Route{Addresses: map[string]string{}}
	for part, url := range map[string]string{partAPI: s.addresses.URL, partS3: s.addresses.S3, partSource: s.addresses.Source} {
		target := strings.TrimPrefix(url, "http://")
		if host, _, err := net.SplitHostPort(target); err != nil || !net.ParseIP(host).IsLoopback() {
			continue // containers reach it like any other program
		}
		listener, err := s.memory.listenWith(ctx, gateListen(), part+"-containers", net.JoinHostPort(listen, "0"))
		if err != nil {
			return container.Route{}, err
		}
		_, port, err := net.SplitHostPort(listener.Addr().String())
		if err != nil {
			return container.Route{}, errors.Join(err, listener.Close())
		}
		route.Addresses[target] = net.JoinHostPort(name, port)
		s.serveGate(listener, target, route.Addresses)
	}
	return route, s.memory.save()
}

// byImage chooses the runner for pools without one. Images of a program, and images exec:, run
// as processes; all others run as containers.
type byImage struct {
	*runner.Runner
	bound []string
}

// Launch implements port.Runner.
func (b byImage) Launch(ctx context.Context, spec port.LaunchSpec) (port.MachineStatus, error) {
	if spec.Runner == "" && !isProgram(spec.Image, b.bound) {
		spec.Placement = platform.Placement{Runner: platform.RunnerContainer}
	}
	return b.Runner.Launch(ctx, spec)
}

// isProgram reports whether an image is a program of this host: exec:, or one that is bound.
func isProgram(image string, bound []string) bool {
	return strings.HasPrefix(image, "exec:") || slices.Contains(bound, image)
}

// searchLimit limits the search for a container engine when a job is stored.
const searchLimit = 2 * time.Second

// checkImage returns an Image fault if the runner of a pool has no image of the name. A runner
// container has every image, as far as this host can see.
func (s *Stack) checkImage(ctx context.Context, runner, image string) error {
	bound := s.bound()
	switch {
	case runner == platform.RunnerKubernetes, runner != platform.RunnerContainer && isProgram(image, bound):
		return nil
	case runner != "" && runner != platform.RunnerContainer:
		return fault.New(fault.Image, "the runner %s has no %q, want %s", runner, image, programs(bound))
	case s.containers == nil:
		return fault.New(fault.Image, "no runner has %q, want %s", image, programs(bound))
	}
	ctx, cancel := context.WithTimeout(ctx, searchLimit)
	defer cancel()
	err := s.containers.Connect(ctx)
	if !fault.Is(err, fault.Image) {
		return nil // an engine that does not answer now may answer at the run
	}
	return fault.New(fault.Image, "no runner has %q. The runner process has %s. The runner container has %s", image, programs(bound), fault.Of(err).Message)
}

// programs lists the images that are programs of this host.
func programs(bound []string) string { return "exec:PROGRAM, " + strings.Join(bound, ", ") }

// pruneInterval is the time between two removals of old containers.
const pruneInterval = time.Minute

// pruneContainers removes old containers at intervals until ctx ends.
func (s *Stack) pruneContainers(ctx context.Context) {
	often := pruneInterval
	if kept := s.config.KeepMachines; kept > 0 {
		often = min(often, kept)
	}
	for clock.Sleep(ctx, s.clock, often) == nil {
		if err := s.containers.Prune(ctx); err != nil && ctx.Err() == nil {
			s.config.Log.WarnContext(ctx, "cannot remove old containers; this is repeated", "error", err.Error())
		}
	}
}

// containersGrace is the time that containers get to end when the stack stops.
const containersGrace = 5 * time.Second

// stopContainers stops the containers like machines: the next Start retries their attempts.
func (s *Stack) stopContainers(ctx context.Context) error {
	if s.containers == nil {
		return nil
	}
	err := s.containers.StopAll(ctx, containersGrace)
	if err = errors.Join(err, s.containers.Close()); err != nil {
		return fmt.Errorf("cannot stop the containers: %w", err)
	}
	return nil
}
