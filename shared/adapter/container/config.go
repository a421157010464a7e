package container

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"regexp"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
)

// Config configures a Runner. Cluster, Dir, Clock and Log are required.
type Config struct {
	// Addresses are the addresses at which an engine may listen; see FindAddresses.
	Addresses Addresses
	// Cluster distinguishes the Sortie instances that share an engine: 1 to 32 of [a-z0-9].
	Cluster string
	// Dir is a private folder for notes about the containers of Cluster.
	Dir string
	// Join, if set, is called once, when the engine first responds. It returns the route by which
	// containers reach this Sortie instance.
	Join func(ctx context.Context, at Place) (Route, error)
	// KeepFor is how long a container remains after its machine was destroyed, or after Prune
	// first saw that it had ended by itself. 0 is DefaultKeepFor.
	KeepFor time.Duration

	Clock clock.Clock
	Log   *slog.Logger
}

// DefaultKeepFor is longer than it takes to record the end of an attempt.
const DefaultKeepFor = 10 * time.Minute

// Place describes the host on which the containers of an engine run.
type Place struct {
	// Gateway is the address of the host in the engine's default network. It is invalid if the
	// engine does not report it.
	Gateway netip.Addr
	// Machine means that the engine runs in a virtual machine, where HostName is the name of
	// the host.
	Machine  bool
	HostName string
	// Rootless means that the engine runs without root. Its default network does not reach the
	// host. If Podman is true, its "host" network is that of the host.
	Rootless, Podman bool
}

// Route is how containers reach this Sortie instance. The zero value changes nothing.
type Route struct {
	// Network is the network that containers join; empty is the engine's default.
	Network string
	// Addresses replaces addresses ("127.0.0.1:8080") in the environment of
	// containers.
	Addresses map[string]string
}

var clusterForm = regexp.MustCompile(`^[a-z0-9]{1,32}$`)

func (c Config) complete() (Config, error) {
	var problems []error
	missing := func(is bool, what string) {
		if is {
			problems = append(problems, errors.New(what+" is missing"))
		}
	}
	missing(c.Dir == "", "the folder")
	missing(c.Clock == nil, "the clock")
	missing(c.Log == nil, "the logger")
	if !clusterForm.MatchString(c.Cluster) {
		problems = append(problems, errors.New("the cluster is not 1 to 32 of a-z and 0-9"))
	}
	if len(problems) > 0 {
		return Config{}, fmt.Errorf("cannot use a container engine: %w", errors.Join(problems...))
	}
	if c.KeepFor <= 0 {
		c.KeepFor = DefaultKeepFor
	}
	return c, nil
}
