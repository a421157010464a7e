package awsfake

import "math/rand/v2"

// Fate says whether a call is applied and what it returns.
type Fate int

// The fates of a call. A fate that an operation cannot have, such as a conflict
// of a read, is Applied.
const (
	// Applied: the call is made and its result returned.
	Applied Fate = iota
	// Lost: the call is not made and fails.
	Lost
	// Unsure: the call is made and fails.
	Unsure
	// Throttled: the call is refused, as above a quota.
	Throttled
	// Conflicted: a write is refused because of a concurrent transaction.
	Conflicted
	// Partial: a batch leaves the second half of its keys unprocessed, and a
	// page of a query ends after the first half of its items.
	Partial
)

// Call is one call of an API.
type Call struct {
	// Operation is the name in the API, such as "UpdateItem".
	Operation string
	// Subject is what the call addresses: the key of the first item, an index
	// and its key, an execution's name, or a task token.
	Subject string
	// Number counts the calls with this operation and subject from 1.
	Number int
	// Write is true if the call may change something.
	Write bool
}

// Plan decides the fate of a call before it is made, except for those that
// create and describe tables and read streams, which are Applied. A fake holds no
// lock meanwhile, so a plan may call it. A nil Plan applies all calls.
type Plan func(Call) Fate

// Seeded gives the part rate of the calls, from 0 to 1, one of the fates.
func Seeded(seed uint64, rate float64, fates ...Fate) Plan {
	return func(c Call) Fate {
		if rate <= 0 || len(fates) == 0 {
			return Applied
		}
		r := draw(seed, uint64(c.Number), c.Operation, c.Subject) //nolint:gosec // a count
		if r.Float64() >= rate {
			return Applied
		}
		return fates[r.IntN(len(fates))]
	}
}

// The parameters of FNV-1a with 64 bits.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// draw returns the random numbers of a seed, a count and some names.
func draw(seed, count uint64, names ...string) *rand.Rand {
	sum := uint64(fnvOffset)
	add := func(b byte) { sum = (sum ^ uint64(b)) * fnvPrime }
	for shift := 56; shift >= 0; shift -= 8 {
		add(byte(count >> shift))
	}
	for _, name := range names {
		for i := range len(name) {
			add(name[i])
		}
		add(0)
	}
	return rand.New(rand.NewPCG(seed, sum)) //nolint:gosec // the same seed must give the same numbers
}
