package run_test

import (
	"cmp"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// pool returns the pool of the run.
func (s *teller) pool() string { return cmp.Or(s.run.Slot.Pool, "default") }

// fallbacks returns the fallbacks of a step with the argument "fallbacks".
func fallbacks(d *datadriven.TestData) []platform.Fallback {
	if !d.HasArg("fallbacks") {
		return nil
	}
	return []platform.Fallback{
		{Pool: "images", On: []platform.FallbackReason{platform.FallbackImage}},
		{Pool: "spare", On: []platform.FallbackReason{platform.FallbackCapacity, platform.FallbackThrottled}, ThrottledFor: time.Minute},
		{Pool: "last", On: platform.FallbackReasons(false), ThrottledFor: time.Minute},
	}
}

// cause returns the fault of a start that an argument names; nil without the argument.
func cause(t *testing.T, d *datadriven.TestData, key string) *fault.Fault {
	if !d.HasArg(key) {
		return nil
	}
	return fault.New(fault.Code(word(t, d, key)), "not now")
}

// detour describes the fallbacks of the run; empty in its own pool.
func (s *teller) detour() string {
	if s.run.Detour == nil {
		return ""
	}
	text := ", from pool " + s.run.Detour.Home
	for _, step := range s.run.Detour.Steps {
		text += " by " + string(step.Reason) + " to " + step.To
	}
	return text + ", in pool " + s.run.Slot.Pool
}
