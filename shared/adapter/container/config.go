package container

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"regexp"
	"time"

	"github.com/sortie-dev/sortie/shared/clock"
)

// Config configures a Runner. Cluster, Dir, Clock and Log are required.
type Config struct {
	// Addresses are where an engine may be; see FindAddresses.
	Addresses Addresses
	// Cluster distinguishes the Sorties that share an engine: 1 to 32 of [a-z0-9].
	Cluster string
	// Dir is a private folder for notes about the containers of Cluster.
	Dir string
	// Join, if set, is called once, when the engine answers for the first time. It
	// returns how containers reach this Sortie.
	Join func(ctx context.Context, at Place) (Route, error)
	// Kept is how long a container remains after its machine was destroyed, or after it was
	// first seen that it had ended by itself; 0 is DefaultKept.
	Kept time.Duration

	Clock clock.Clock
	Log   *slog.Logger
}

// DefaultKept is longer than the time in which the end of an attempt is recorded.
const DefaultKept = 10 * time.Minute

// Place says where the containers of an engine run.
type Place struct {
	// Gateway is the address of the host in the engine's default network; invalid if the
	// engine shows none.
	Gateway netip.Addr
	// Machine: the engine runs in a virtual machine, in which HostName is the host.
	Machine  bool
	HostName string
	// Rootless: the engine runs without root. Its default network does not reach the
	// host; its "host" network is the host's if Podman is true.
	Rootless, Podman bool
}

// Route is how containers reach this Sortie. The zero value changes nothing.
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
	if c.Kept <= 0 {
		c.Kept = DefaultKept
	}
	return c, nil
}
