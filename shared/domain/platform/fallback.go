package platform

import (
	"slices"
	"strconv"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// Fallback is another pool for runs whose machines are not started by the platform of their own
// pool.
type Fallback struct {
	Pool string `json:"pool"`
	// On lists the reasons for which the pool is used, at least one.
	On []FallbackReason `json:"on"`
	// ThrottledFor is how long the platform must have throttled the starts of an attempt
	// before FallbackThrottled applies.
	ThrottledFor time.Duration `json:"throttledFor,omitempty"`
}

// FallbackReason is a reason to use a fallback.
type FallbackReason string

// The reasons. Each means that the platform has started no machine. The failure of a program is
// not a reason.
const (
	// FallbackCapacity: the platform has no capacity.
	FallbackCapacity FallbackReason = "capacity"
	// FallbackImage: the platform does not know the image, or cannot start it.
	FallbackImage FallbackReason = "image"
	// FallbackThrottled: the platform has throttled starts for ThrottledFor.
	FallbackThrottled FallbackReason = "throttled"
)

// FallbackReasons lists all reasons.
func FallbackReasons() []FallbackReason {
	return []FallbackReason{FallbackCapacity, FallbackImage, FallbackThrottled}
}

// MaxFallbacks is the maximum number of fallbacks of a pool. MaxThrottledFor is the longest
// ThrottledFor.
const (
	MaxFallbacks    = 10
	MaxThrottledFor = limit.Duration
)

// CheckFallbacks returns a fault for each invalid field of the fallbacks of the pool.
func CheckFallbacks(pool string, fallbacks []Fallback) (found []*fault.Fault) {
	if len(fallbacks) > MaxFallbacks {
		return []*fault.Fault{fault.Invalid("fallback", "%d entries, want at most %d", len(fallbacks), MaxFallbacks)}
	}
	bad := func(field, format string, args ...any) { found = append(found, fault.Invalid(field, format, args...)) }
	for i, f := range fallbacks {
		at := "fallback." + strconv.Itoa(i) + "."
		switch {
		case !limit.ValidName(f.Pool):
			bad(at+"pool", "malformed pool %q, want 1 to 63 lower-case letters, digits and hyphens, the first no hyphen", limit.Cut(f.Pool, limit.FileName))
		case f.Pool == pool:
			bad(at+"pool", "the pool %q itself, want another pool", pool)
		case slices.ContainsFunc(fallbacks[:i], func(other Fallback) bool { return other.Pool == f.Pool }):
			bad(at+"pool", "repeated pool %q, want each once", f.Pool)
		}
		if len(f.On) == 0 {
			bad(at+"on", "missing reasons, want capacity, image or throttled")
		}
		for j, reason := range f.On {
			if !slices.Contains(FallbackReasons(), reason) || slices.Contains(f.On[:j], reason) {
				bad(at+"on."+strconv.Itoa(j), "unknown or repeated reason %q, want capacity, image or throttled", limit.Cut(string(reason), limit.FileName))
			}
		}
		if slices.Contains(f.On, FallbackThrottled) != (f.ThrottledFor > 0) {
			bad(at+"throttledSeconds", "throttledSeconds belongs to the reason throttled, want both or neither")
		}
	}
	return found
}
