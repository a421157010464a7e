package fake

import (
	"context"
	"maps"
	"math/rand/v2"
	"sync"

	"github.com/sortie-dev/sortie/shared/fault"
)

// Fate says whether a call is applied and what it returns.
type Fate int

// The fates of a call.
const (
	// Applied: the call is made and its result returned.
	Applied Fate = iota
	// Lost: the call is not made; it returns an Unavailable fault.
	Lost
	// Unsure: the call is made, but returns an Unavailable fault. For a read it
	// is the same as Lost.
	Unsure
)

// Call is one call of a method.
type Call struct {
	// Number counts the calls of the fake from 1.
	Number int
	// Method is the name of the port's method, such as "Commit".
	Method string
	// Subject is what the call addresses: an execution's name or token, an
	// object's key, a machine's id. A Store's calls have none.
	Subject string
	// Write is true if the call may change something.
	Write bool
}

// Plan decides the fate of each call, in their order. It is called for one call
// at a time, before the call is made. A nil Plan applies all calls.
type Plan func(Call) Fate

// Seeded fails the given part of the calls, rate from 0 to 1: half are Lost and
// half Unsure. The fate of the n-th call is a function of the seed and n.
func Seeded(seed uint64, rate float64) Plan {
	return func(c Call) Fate {
		draw := rand.New(rand.NewPCG(seed, uint64(c.Number))).Float64() //nolint:gosec // the same seed must give the same plan
		switch {
		case draw < rate/2:
			return Lost
		case draw < rate:
			return Unsure
		}
		return Applied
	}
}

// Script gives the first writes these fates in order. Later writes and all
// reads are Applied.
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

// calls applies a plan and counts.
type calls struct {
	plan Plan

	mu                  sync.Mutex
	count, lost, unsure int
	made                map[string]int
}

// Made returns the number of calls by method.
func (c *calls) Made() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.made)
}

// Failures returns how many calls were not made, and how many were made and
// reported as failed.
func (c *calls) Failures() (lost, unsure int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost, c.unsure
}

// fate numbers the call and asks the plan.
func (c *calls) fate(method, subject string, write bool) Fate {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	if c.made == nil {
		c.made = map[string]int{}
	}
	c.made[method]++
	fate := Applied
	if c.plan != nil {
		fate = c.plan(Call{Number: c.count, Method: method, Subject: subject, Write: write})
	}
	switch fate {
	case Lost:
		c.lost++
	case Unsure:
		c.unsure++
	}
	return fate
}

// call makes the call as the plan decides. An error of do stays what it is
// unless the call was Unsure.
func (c *calls) call(ctx context.Context, method, subject string, write bool, do func() error) error {
	fate := c.fate(method, subject, write)
	if err := ctx.Err(); err != nil {
		return fault.Wrap(err, fault.Unavailable, "%s: the context has ended", method)
	}
	if fate == Lost {
		return fault.New(fault.Unavailable, "%s: the call was lost", method)
	}
	err := do()
	if fate == Unsure {
		return fault.New(fault.Unavailable, "%s: the answer was lost", method)
	}
	return err
}

// result is call for methods with a result, which a failed call does not have.
func result[T any](ctx context.Context, c *calls, method, subject string, write bool, do func() (T, error)) (T, error) {
	var got, none T
	err := c.call(ctx, method, subject, write, func() (err error) {
		got, err = do()
		return err
	})
	if err != nil {
		return none, err
	}
	return got, nil
}
