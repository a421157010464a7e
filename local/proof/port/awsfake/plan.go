package awsfake

import "math/rand/v2"

// Fate says whether a call is applied and how it is answered.
type Fate int

// The fates of a call. A fate that an operation cannot have, such as a conflict of a read, has
// the effect of Applied.
const (
	// Applied: the call is applied and its result is returned.
	Applied Fate = iota
	// Lost: the call fails and is not applied.
	Lost
	// Unsure: the call is applied but fails.
	Unsure
	// Throttled: the call is rejected as if it exceeded a quota.
	Throttled
	// Conflicted: a write is rejected because of a concurrent transaction.
	Conflicted
	// Partial: a batch returns the second half of its keys as unprocessed, and a page of a
	// query ends after the first half of its items.
	Partial
)

// Call describes a call of an API.
type Call struct {
	// Operation is the operation's name in the API, such as "UpdateItem".
	Operation string
	// Subject identifies the target of the call: the key of the first item, an index and its
	// key, the name of an execution, or a task token.
	Subject string
	// Number is the number of calls so far with this operation and subject, from 1.
	Number int
	// Write is true if the call may change something.
	Write bool
}

// Plan decides the fate of a call before it is made. Calls that create or describe tables or
// read streams are always Applied. The fake holds no lock while it calls the plan, so a plan
// may call the fake. A nil Plan applies all calls.
type Plan func(Call) Fate

// Seeded returns a plan that gives a fraction of the calls, rate from 0 to 1, one of the fates.
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

// draw returns a random generator whose seed is derived from a seed, a count and names.
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
