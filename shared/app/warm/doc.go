// Package warm keeps the warm machines of pools: stopped machines that a start can claim. A sweep
// creates, recycles and ends them until each pool matches its settings; fleet.PlanWarm decides.
//
// Each change of a machine is committed to its record first, so that overlapping sweeps and starts
// see it. What the room needs of runs it declares as Runs.
package warm

import (
	"context"
	"log/slog"
	"time"

	"github.com/sortie-dev/sortie/shared/app/capacity"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// Store stores pools with their warm machines, and what needs them.
type Store interface {
	port.PoolStore
	port.LeaseStore
	port.JobStore
	port.RunStore
}

// Runs are the runs that use warm machines.
type Runs interface {
	// Parts returns the clock, the log and the caches of the process.
	Parts() (clock.Clock, *slog.Logger, *capacity.Caches)
	// MayDestroyUnknown returns nil if a machine without a record may be destroyed.
	MayDestroyUnknown(ctx context.Context, m port.MachineStatus) error
}

// Config configures the warm machines of a deployment.
type Config struct {
	// Policy is the default policy of runs.
	Policy spec.Policy
	// Key returns the key of the warm machines that fit work in a placement.
	Key func(w spec.Work, where platform.Placement) platform.WarmKey
	// Workers is the number of machines that are changed concurrently; 0 and 1 change them one by
	// one.
	Workers int
}

// Machines keeps the warm machines of pools. Sweeps may overlap.
type Machines struct {
	runs     Runs
	store    Store
	clock    clock.Clock
	log      *slog.Logger
	capacity *capacity.Caches
	runner   port.Runner
	hex      func(n int) string
	config   Config
}

// New returns the warm machines of a runner, whose records are in a store. hex returns n random bytes in hexadecimal.
func New(runs Runs, store Store, runner port.Runner, hex func(n int) string, config Config) *Machines {
	c, log, known := runs.Parts()
	return &Machines{runs, store, c, log, known, runner, hex, config}
}

func (s *Machines) now() time.Time { return clock.UTC(s.clock) }

// pageSize is the number of pools or jobs that are read at a time, and strayWait how long a sweep
// waits until a machine that it destroyed is gone.
const (
	pageSize  = 100
	strayWait = time.Second
)
