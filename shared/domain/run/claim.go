package run

import (
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// WarmClaim is the claim of an attempt on a warm machine.
type WarmClaim struct {
	// ID is the id of the WarmMachine.
	ID      string           `json:"id"`
	Machine platform.Machine `json:"machine"`
	// Pool is the pool of the WarmMachine. Recycle: the machine is not destroyed when its program
	// has ended, so that it can be recycled. It is destroyed only once its record is in
	// WarmEnding.
	Pool    string `json:"pool,omitempty"`
	Recycle bool   `json:"keep,omitempty"`
	// StartBy is when the machine must run. A stopped machine is bound to its host, which may
	// have no capacity for it.
	StartBy time.Time `json:"startBy"`
	// GivenUp: the launch destroys the machine because it was not seen running in time.
	GivenUp bool `json:"givenUp,omitempty"`
}

const (
	// warmStart is how long a claimed machine may take to start.
	warmStart = 10 * time.Second
	// warmEnd is how long after StartBy a claimed machine may take to be gone.
	warmEnd = time.Minute
	// mostStuck is how many claimed machines of an attempt may fail to start. After that the
	// attempt creates a machine.
	mostStuck = 2
)

// MayClaim reports whether the attempt can claim a warm machine. It cannot if it may already
// have a machine.
func (r Run) MayClaim() bool {
	a := r.Attempt
	return r.State == ContainerCreating && !r.Queued() && !a.MaybeCreated && !a.Machine.Known() && a.Warm == nil && a.StuckWarm < mostStuck
}

// HasClaimed reports whether the attempt has claimed the machine.
func (r Run) HasClaimed(m platform.Machine) bool {
	return r.Attempt.Warm != nil && r.Attempt.Warm.Machine.Key() == m.Key()
}

// WarmForReuse returns the attempt's warm machine if its pool recycles it after the attempt; zero
// otherwise.
func (r Run) WarmForReuse() platform.WarmRef {
	if c := r.Attempt.Warm; c != nil && c.Recycle {
		return platform.WarmRef{Tenant: r.Tenant, Pool: c.Pool, ID: c.ID}
	}
	return platform.WarmRef{}
}

// MachineClaimed: the attempt has claimed a warm machine. It is committed with the claimed
// WarmMachine, before the call that starts it. A repeated call starts the same machine.
type MachineClaimed struct {
	Attempt int
	Warm    platform.WarmMachine
	// Recycle: the pool recycles machines.
	Recycle bool
}

func (f MachineClaimed) apply(d *draft) error {
	if f.Attempt != d.Attempt.Number || !d.MayClaim() {
		return nil
	}
	d.Attempt.Warm = &WarmClaim{
		ID: f.Warm.ID, Machine: f.Warm.Machine, Pool: f.Warm.Pool, StartBy: d.now.Add(warmStart),
		Recycle: f.Recycle && f.Warm.Machine.Version != "", // a start is conditional on the version
	}
	d.changed = true
	return nil
}

// mayGiveUpClaim reports whether a launch may be destroying the claimed machine because it did not
// start. The launch then decides what follows.
func (d *draft) mayGiveUpClaim() bool {
	return d.State == ContainerCreating && d.Attempt.Warm != nil && d.now.Before(d.Attempt.Warm.StartBy.Add(warmEnd))
}

// GiveUpBegun: the launch is about to destroy the attempt's claimed machine, which was not seen
// running in time. It changes nothing once the worker has called.
type GiveUpBegun struct {
	Attempt int
	ID      string
}

func (f GiveUpBegun) apply(d *draft) error {
	if c := d.Attempt.Warm; d.isCurrent(f.Attempt) && d.State == ContainerCreating && c != nil && c.ID == f.ID && !c.GivenUp {
		given := *c
		given.GivenUp = true
		d.Attempt.Warm, d.changed = &given, true
	}
	return nil
}

// claimGivenUp reports whether Sortie has requested the stop of the attempt's warm machine
// because it was not seen running in time.
func (d *draft) claimGivenUp() bool { return d.Attempt.Warm != nil && d.Attempt.Warm.GivenUp }

// lost returns the fault of the attempt if its machine ended before its worker reported.
func (d *draft) lost(exit *Exit) *fault.Fault {
	if d.claimGivenUp() && exit != nil && exit.Requested && !exit.OOM {
		return fault.New(fault.StartTimeout, "the machine was destroyed, because it was not seen running in time")
	}
	return lost(exit)
}

// MachineGivenUp: the claimed machine is stopped or gone, and never ran the attempt's program. The
// attempt claims another one or creates a machine.
type MachineGivenUp struct {
	Attempt int
	ID      string
}

func (f MachineGivenUp) apply(d *draft) error {
	a := &d.Attempt
	if !d.isCurrent(f.Attempt) || d.State != ContainerCreating || a.Warm == nil || a.Warm.ID != f.ID {
		return nil
	}
	a.Warm, a.Machine, a.MaybeCreated = nil, platform.Machine{}, false
	a.StuckWarm++
	a.CreateBy = d.now.Add(createLimit)
	a.StartBy = d.now.Add(d.Policy.StartTimeout)
	d.changed = true
	return nil
}
