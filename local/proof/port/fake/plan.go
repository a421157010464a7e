package fake

import (
	"context"
	"maps"
	"math/rand/v2"
	"sync"

	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// Fate says whether a call is applied and how it is answered.
type Fate int

// The fates of a call.
const (
	// Applied: the call is applied and its result is returned.
	Applied Fate = iota
	// Lost: the call is not applied and returns an Unavailable fault.
	Lost
	// Unsure: the call is applied but returns an Unavailable fault. A read that is Unsure is
	// the same as one that is Lost.
	Unsure
)

// Call describes a call of a method.
type Call struct {
	// Number is the number of calls of the fake so far, from 1.
	Number int
	// Method is the name of the port's method, such as "Commit".
	Method string
	// Subject identifies the target of the call: the name or token of an execution, the key of
	// an object, the ID of a machine. Calls of a Store have no subject.
	Subject string
	// Write is true if the call may change something.
	Write bool
}

// Plan decides the fate of each call, in the order of the calls. It is not called concurrently,
// and it is called before the call is made. A nil Plan applies all calls.
type Plan func(Call) Fate

// Seeded returns a plan that fails a fraction of the calls, rate from 0 to 1. Half of the
// failed calls are Lost and half Unsure. The fate of the n-th call is a function of the seed
// and n.
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

// Script returns a plan that gives the first writes these fates in order. Later writes and all
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

// calls applies a plan to calls and counts them.
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

// Failures returns the number of calls that were not applied, and of calls that were applied
// and reported as failed.
func (c *calls) Failures() (lost, unsure int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost, c.unsure
}

// fate counts the call and returns the fate that the plan decides.
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

// call makes the call with the fate that the plan decides. It returns an error of do unchanged,
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

// result is call for methods with a result. A failed call returns the zero value.
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
