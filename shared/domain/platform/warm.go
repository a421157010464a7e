package platform

import (
	"cmp"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// Warm are the settings of the warm machines of a pool. Warm machines are created and stopped
// before a run needs them. Starting them does not count against the platform's limit of
// creations.
type Warm struct {
	// Min is the number of machines to keep for Image, CPUs and MemoryMB.
	Min int `json:"min,omitempty"`
	// Max is the maximum number of machines that no run has claimed.
	Max int `json:"max"`
	// Ahead is how long before each firing a machine is created for it; 0 means never.
	Ahead time.Duration `json:"ahead,omitempty"`
	// MaxAge is the time from the creation of an unclaimed machine to its replacement; 0 means
	// DefaultWarmAge.
	MaxAge time.Duration `json:"maxAge,omitempty"`
	// After is what happens to a machine after its attempt; empty means WarmDestroy.
	After WarmAfter `json:"after,omitempty"`
	// Image, CPUs and MemoryMB apply to Min; zero values mean those of the deployment.
	Image    string `json:"image,omitempty"`
	CPUs     int    `json:"cpus,omitempty"`
	MemoryMB int    `json:"memoryMb,omitempty"`
}

// WarmAfter is what happens to a warm machine after its attempt.
type WarmAfter string

// The values of WarmAfter.
const (
	WarmDestroy WarmAfter = "destroy"
	// WarmRecycle: a machine whose program ended with code 0 is reused for another attempt of
	// its pool. Other machines are destroyed.
	WarmRecycle WarmAfter = "recycle"
)

// The limits of Warm.
const (
	MostWarm       = 200
	DefaultWarmAge = 24 * time.Hour
	mostWarmAhead  = 24 * time.Hour
	mostWarmAge    = 30 * 24 * time.Hour
	mostWarmCPUs   = 16
	warmMemoryStep = 256
	mostWarmMemory = 128 << 10
)

// Check returns the faults of the settings for a pool of the runner, each with its field.
func (w Warm) Check(runner string) (found []*fault.Fault) {
	if !KeepsWarm(runner) {
		found = append(found, fault.Invalid("warm", "the runner %s has no warm machines, want none with it", runner))
	}
	within := func(field string, n, least, most int) {
		if n < least || n > most {
			found = append(found, fault.Invalid("warm."+field, "%d is out of range, want %d to %d", n, least, most))
		}
	}
	within("min", w.Min, 0, MostWarm)
	within("max", w.Max, max(min(w.Min, MostWarm), 1), MostWarm)
	within("aheadSeconds", int(w.Ahead/time.Second), 0, int(mostWarmAhead/time.Second))
	within("maxAgeSeconds", int(w.MaxAge/time.Second), 0, int(mostWarmAge/time.Second))
	within("cpus", w.CPUs, 0, mostWarmCPUs)
	within("memoryMb", w.MemoryMB, 0, mostWarmMemory)
	if w.MemoryMB%warmMemoryStep != 0 {
		found = append(found, fault.Invalid("warm.memoryMb", "%d is no multiple of %d, want one", w.MemoryMB, warmMemoryStep))
	}
	if w.After != "" && w.After != WarmDestroy && w.After != WarmRecycle {
		found = append(found, fault.Invalid("warm.after", "unknown value %q, want %s or %s", w.After, WarmDestroy, WarmRecycle))
	}
	if len(w.Image) > limit.FileName || !limit.Printable(w.Image) {
		found = append(found, fault.Invalid("warm.image", "malformed image, want at most %d printable characters", limit.FileName))
	}
	return found
}

// Age returns the age at which an unclaimed machine is replaced.
func (w Warm) Age() time.Duration { return cmp.Or(w.MaxAge, DefaultWarmAge) }

// WarmKey has the properties of a machine that a run and a warm machine must share. If Image is
// a tag, it may refer to another image later; see WarmMachine.Digest.
type WarmKey struct {
	Image    string `json:"image"`
	CPUs     int    `json:"cpus"`
	MemoryMB int    `json:"memoryMb"`
	// Region is empty if the platform chooses it.
	Region string `json:"region,omitempty"`
}

// WarmState is the state of a warm machine.
type WarmState string

// The states. The record is committed before the call to the platform.
const (
	// WarmCreating: the machine is being created, or its image is not ready. Its creator moves
	// it to WarmReady. A sweep ends a machine that stays in this state.
	WarmCreating WarmState = "creating"
	// WarmReady: the machine is stopped. A claim moves it to WarmClaimed, or a sweep ends it.
	WarmReady WarmState = "ready"
	// WarmClaimed: the machine belongs to an attempt. After the attempt a sweep recycles or
	// ends it.
	WarmClaimed WarmState = "claimed"
	// WarmRecycling: the machine is stopped after an attempt, and the configuration of the
	// attempt is being removed. A sweep moves it to WarmReady, or ends it.
	WarmRecycling WarmState = "recycling"
	// WarmEnding: the machine is being destroyed. The record is deleted once it is gone.
	WarmEnding WarmState = "ending"
)

// WarmStates lists all states.
func WarmStates() []WarmState {
	return []WarmState{WarmCreating, WarmReady, WarmClaimed, WarmRecycling, WarmEnding}
}

// WarmRef identifies a warm machine in its pool. The zero value means no machine.
type WarmRef struct{ Tenant, Pool, ID string }

// WarmMachine is the record of a warm machine. It is a value; its methods return a changed
// copy.
type WarmMachine struct {
	Tenant string `json:"tenant"`
	Pool   string `json:"pool"`
	ID     string `json:"id"`
	// Version counts the commits, from 1. A commit is conditional on it.
	Version   int64     `json:"version"`
	Key       WarmKey   `json:"key"`
	Placement Placement `json:"placement,omitzero"`
	Phase     WarmState `json:"state"`
	// App is the place in which the machine is created. Machine is set once the machine is
	// known.
	App     string  `json:"app,omitempty"`
	Machine Machine `json:"machine,omitzero"`
	// Digest is the digest of the machine's image; empty if the platform does not report it.
	Digest    string    `json:"digest,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	// UnneededAt is when the machine was last needed for Min or a firing; zero while it is needed.
	// The run of a past firing may still claim it.
	UnneededAt time.Time `json:"unneededAt,omitzero"`
	// Run and Attempt identify the attempt that has claimed the machine.
	Run     string `json:"run,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	// Recycled counts how often the machine was made ready again after an attempt.
	Recycled int `json:"recycled,omitempty"`
}

// Ref returns the reference of the machine.
func (w WarmMachine) Ref() WarmRef { return WarmRef{w.Tenant, w.Pool, w.ID} }

// Name returns the name of the machine on its platform.
func (w WarmMachine) Name() string { return ResourceName(w.Tenant, w.Pool, "w"+w.ID+"x", 1) }

// Outdated reports whether a later machine with this image and digest shows that the image of w
// has changed.
func (w WarmMachine) Outdated(image, digest string, later time.Time) bool {
	return w.Key.Image == image && w.Digest != "" && digest != "" && w.Digest != digest && w.CreatedAt.Before(later)
}

// Claimable reports whether an attempt with the key and the placement can use the machine.
func (w WarmMachine) Claimable(key WarmKey, where Placement) bool {
	return w.Phase == WarmReady && w.Machine.Known() && w.Key == key && w.Placement.Equal(where)
}

// ClaimedBy returns the machine as claimed by an attempt of the run with the id.
func (w WarmMachine) ClaimedBy(runID string, attempt int) WarmMachine {
	w.Phase, w.Run, w.Attempt = WarmClaimed, runID, attempt
	return w
}

// Recyclable reports whether the machine can be reused after its attempt: the program ended by
// itself with code 0 (clean), and the digest of the image is that of the record.
func (w WarmMachine) Recyclable(clean bool, digest string) bool {
	return clean && w.Machine.Known() && w.Digest == digest
}

// Clearing returns the machine in WarmRecycling, with the version that its platform shows.
func (w WarmMachine) Clearing(version string) WarmMachine {
	w.Phase, w.Machine.Version = WarmRecycling, version
	return w
}

// Cleared returns the machine as ready for another attempt.
func (w WarmMachine) Cleared(is Machine) WarmMachine {
	w.Phase, w.Machine, w.Run, w.Attempt, w.UnneededAt = WarmReady, is, "", 0, time.Time{}
	w.Recycled++
	return w
}
