package flaky

import "math/rand/v2"

// Fate is what becomes of a call.
type Fate int

// The fates.
const (
	// Made: the store is asked, and its answer given.
	Applied Fate = iota
	// Lost: the store is not asked; the answer is an Unavailable fault.
	Lost
	// Unsure: the store is asked, but the answer is an Unavailable fault. For a
	// read it is the same as Lost.
	Unsure
)

// Call is one call of a method.
type Call struct {
	// Number counts all calls from 1.
	Number int
	// Method is the method's name: "Commit".
	Method string
	// Write: it may change what is stored.
	Write bool
}

// Plan tells each call's fate. It is asked for one call at a time, in their
// order.
type Plan func(Call) Fate

// Seeded fails a part of the calls, rate from 0 to 1, half of them in one way,
// half in the other. The fate of the n-th call is a function of the seed and n.
func Seeded(seed uint64, rate float64) Plan {
	return func(c Call) Fate {
		roll := rand.New(rand.NewPCG(seed, uint64(c.Number))).Float64() //nolint:gosec // the same seed must give the same plan
		switch {
		case roll < rate/2:
			return Lost
		case roll < rate:
			return Unsure
		}
		return Applied
	}
}

// Script gives the calls that write these fates, one after another; later ones
// and all reads are Made.
func Script(fates ...Fate) Plan {
	next := 0
	return func(c Call) Fate {
		if !c.Write || next >= len(fates) {
			return Applied
		}
		next++
		return fates[next-1]
	}
}
