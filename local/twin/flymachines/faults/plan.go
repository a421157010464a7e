// Package faults decides when the local machines API lies.
//
// A Plan says which faults strike whom. The decision about one subject (a
// machine, by app and name) depends on the plan's seed, the rule and how often
// the rule was asked about that subject, and on nothing else: the same plan
// gives the same faults, however requests interleave. The package only
// decides; the server does what is decided. It refuses unknown kinds and rules
// that could never strike.
package faults

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"time"
)

// Kind is a way in which the API lies or fails.
type Kind string

// The kinds that strike a request. They know Rule.Action.
const (
	// Throttle answers 429; nothing happens. Plan.RealLimits has the real
	// buckets beside it.
	Throttle Kind = "throttle"
	// BadGateway answers 502 before anything happens.
	BadGateway Kind = "bad-gateway"
	// BadGatewayAfter does what is asked and answers 502.
	BadGatewayAfter Kind = "bad-gateway-after"
	// LostAnswer does what is asked and drops the connection.
	LostAnswer Kind = "lost-answer"
	// Slow waits for Rule.For before it does what is asked, and does it whether
	// or not anyone still waits.
	Slow Kind = "slow"
	// Capacity refuses to create a machine, in one of Fly's ways (Rule.Variant).
	Capacity Kind = "capacity"
)

// The kinds that strike a machine. They are chosen when it is created, and
// stay with it over a restart of the server.
const (
	// Invisible: for Rule.For after the creation, a lookup says 404 and a list
	// does not show it. Its name is taken all the same.
	Invisible Kind = "invisible"
	// StuckCreated, StuckStarting and StuckDestroying: it stays in that state
	// for Rule.For, or for ever where that is 0.
	StuckCreated    Kind = "stuck-created"
	StuckStarting   Kind = "stuck-starting"
	StuckDestroying Kind = "stuck-destroying"
	// OOM kills the program Rule.For after its start, as the kernel does when
	// the memory is used up.
	OOM Kind = "oom"
	// LostExit: the machine ends without an exit event.
	LostExit Kind = "lost-exit"
	// Unreachable: the host does not answer, so config is missing and
	// incomplete_config is there.
	Unreachable Kind = "unreachable"
)

// The actions of the machines API, as Fly limits them one by one.
const (
	Create   = "create"
	Get      = "get"
	List     = "list"
	Wait     = "wait"
	Start    = "start"
	Stop     = "stop"
	Restart  = "restart"
	Signal   = "signal"
	Destroy  = "destroy"
	Metadata = "metadata"
)

// Variants are the values of Rule.Variant: Fly's ways of having no room.
func Variants() []string {
	return []string{"memory", "cpu", "none", "insufficient", "volume", "quota", "region"}
}

// Rule says what strikes whom. Every field of the match that is set must fit.
type Rule struct {
	Kind Kind `json:"kind"`

	App string `json:"app,omitempty"`
	// Name is a pattern for the machine's name, as path.Match has it.
	Name     string            `json:"name,omitempty"`
	Region   string            `json:"region,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Env      map[string]string `json:"env,omitempty"`
	// Action is the request that is struck; empty is "create".
	Action string `json:"action,omitempty"`

	// Times is how often the rule strikes one subject; 0 is every time.
	Times int `json:"times,omitempty"`
	// Rate is the share of what fits that is struck, 0 to 1; 0 is all.
	Rate float64 `json:"rate,omitempty"`
	// For is how long, in nanoseconds; what 0 means stands at the kind.
	For time.Duration `json:"for,omitempty"`
	// Variant is one of Variants for Capacity; empty leaves it to the seed.
	Variant string `json:"variant,omitempty"`
}

// Plan is what goes wrong. The zero Plan lets everything go right.
type Plan struct {
	Seed uint64 `json:"seed,omitempty"`
	// RealLimits turns on Fly's rate limits: one request a second and a burst
	// of three, five and ten for get, for each action and machine (app, where
	// the action has no machine).
	RealLimits bool   `json:"realLimits,omitempty"`
	Rules      []Rule `json:"rules,omitempty"`
}

// Validate names every mistake in the plan.
func (p Plan) Validate() error {
	var problems []error
	for i, rule := range p.Rules {
		for _, problem := range rule.problems() {
			problems = append(problems, fmt.Errorf("rules[%d]: %s", i, problem))
		}
	}
	return errors.Join(problems...)
}

func (r Rule) problems() []string {
	var problems []string
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	requests := []Kind{Throttle, BadGateway, BadGatewayAfter, LostAnswer, Slow, Capacity}
	machines := []Kind{Invisible, StuckCreated, StuckStarting, StuckDestroying, OOM, LostExit, Unreachable}
	actions := []string{Create, Get, List, Wait, Start, Stop, Restart, Signal, Destroy, Metadata}
	onRequest := slices.Contains(requests, r.Kind)
	if !onRequest && !slices.Contains(machines, r.Kind) {
		add("kind %q is unknown", r.Kind)
	}
	switch {
	case r.Action == "":
	case !slices.Contains(actions, r.Action):
		add("action %q is unknown", r.Action)
	case !onRequest || (r.Kind == Capacity && r.Action != Create):
		add("kind %q does not strike action %q", r.Kind, r.Action)
	}
	if _, err := path.Match(r.Name, ""); err != nil {
		add("name %q is not a pattern", r.Name)
	}
	if r.Times < 0 {
		add("times is %d, want 0 or more", r.Times)
	}
	if !(r.Rate >= 0 && r.Rate <= 1) {
		add("rate is %v, want 0 to 1", r.Rate)
	}
	if r.For < 0 || ((r.Kind == Slow || r.Kind == Invisible) && r.For == 0) {
		add("for is %v, want more than 0", r.For)
	}
	if r.Variant != "" && (r.Kind != Capacity || !slices.Contains(Variants(), r.Variant)) {
		add("variant %q does not fit kind %q", r.Variant, r.Kind)
	}
	return problems
}
