package trace

import (
	"encoding/binary"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

// Sampler decides by OpenTelemetry's rules which runs are traced. The decision depends only on
// the record, so it is the same for all spans of a run.
type Sampler struct {
	// Ratio is the fraction of the traces that are recorded, from 0 to 1.
	Ratio float64
	// Alone applies Ratio to every run. Otherwise a run in a client's trace is recorded if the
	// client's context is sampled.
	Alone bool
}

// Samples reports whether the spans of the run are recorded.
func (s Sampler) Samples(r run.Run) bool {
	if c, ok := Client(r); ok && !s.Alone {
		return c.Sampled
	}
	if s.Ratio <= 0 || s.Ratio >= 1 {
		return s.Ratio >= 1
	}
	// OpenTelemetry's Go SDK uses the same bound, so the same ratio selects the same traces.
	id := Of(r).Trace
	return binary.BigEndian.Uint64(id[8:])>>1 < uint64(s.Ratio*(1<<63))
}
