package platform

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// Fallback is another pool for runs whose machines are not started by the platform of their own
// pool, or for tasks that the engines of their own pool do not serve.
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

// The reasons of pools of a runner. Each means that the platform has started no machine. The failure
// of a program is not a reason.
const (
	// FallbackCapacity: the platform has no capacity.
	FallbackCapacity FallbackReason = "capacity"
	// FallbackImage: the platform does not know the image, or cannot start it.
	FallbackImage FallbackReason = "image"
	// FallbackThrottled: the platform has throttled starts for ThrottledFor.
	FallbackThrottled FallbackReason = "throttled"
)

// The reasons of pools of an engine. Each means that the client has received nothing of an answer.
const (
	// FallbackError: no replica of the pool answers, or all have failed.
	FallbackError FallbackReason = "error"
	// FallbackQueue: the queue of the pool is full.
	FallbackQueue FallbackReason = "queue"
	// FallbackContext: the prompt is too long for the model of the pool.
	FallbackContext FallbackReason = "context"
)

// FallbackReasons lists the reasons of the pools of an engine, or of those of a runner.
func FallbackReasons(engine bool) []FallbackReason {
	if engine {
		return []FallbackReason{FallbackError, FallbackQueue, FallbackContext}
	}
	return []FallbackReason{FallbackCapacity, FallbackImage, FallbackThrottled}
}

// MaxFallbacks is the maximum number of fallbacks of a pool. MaxThrottledFor is the longest
// ThrottledFor.
const (
	MaxFallbacks    = 10
	MaxThrottledFor = limit.Duration
)

// CheckFallbacks returns a fault for each invalid field of the fallbacks of the pool, which has an
// engine or a runner.
func CheckFallbacks(pool string, fallbacks []Fallback, engine bool) (found []*fault.Fault) {
	if len(fallbacks) > MaxFallbacks {
		return []*fault.Fault{fault.Invalid("fallback", "%d entries, want at most %d", len(fallbacks), MaxFallbacks)}
	}
	reasons := FallbackReasons(engine)
	names := fmt.Sprintf("%s, %s or %s", reasons[0], reasons[1], reasons[2])
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
			bad(at+"on", "missing reasons, want %s", names)
		}
		for j, reason := range f.On {
			if !slices.Contains(reasons, reason) || slices.Contains(f.On[:j], reason) {
				bad(at+"on."+strconv.Itoa(j), "unknown or repeated reason %q, want %s", limit.Cut(string(reason), limit.FileName), names)
			}
		}
		if slices.Contains(f.On, FallbackThrottled) != (f.ThrottledFor > 0) {
			bad(at+"throttledSeconds", "throttledSeconds belongs to the reason throttled, want both or neither")
		}
	}
	return found
}
