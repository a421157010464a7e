// Package faults decides which faults the local machines API injects.
//
// A Plan says which faults apply to which requests and machines. The decision
// about one subject (a machine, by app and name) depends only on the plan's
// seed, the rule, and how often the rule was evaluated for that subject. So the
// same plan yields the same faults, however requests interleave. The package
// only decides; the server injects. Unknown kinds and rules that could never
// apply are errors.
package faults

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// Kind is a kind of fault.
type Kind string

// The kinds that apply to a request. They use Rule.Action.
const (
	// Throttle answers 429; nothing happens. Plan.RealLimits adds Fly's own
	// rate limits.
	Throttle Kind = "throttle"
	// BadGateway answers 502 before anything happens.
	BadGateway Kind = "bad-gateway"
	// BadGatewayAfter carries out the request and answers 502.
	BadGatewayAfter Kind = "bad-gateway-after"
	// LostAnswer carries out the request and drops the connection.
	LostAnswer Kind = "lost-answer"
	// Slow waits for Rule.For and then carries out the request, even if the
	// client has left.
	Slow Kind = "slow"
	// Capacity refuses to create a machine with one of Fly's errors
	// (Rule.Variant).
	Capacity Kind = "capacity"
	// Leased answers 409 as if another caller held the machine's lease, and Changed as if
	// the machine had another version; nothing happens.
	Leased  Kind = "leased"
	Changed Kind = "changed"
)

// The kinds that apply to a machine. They are chosen when the machine is
// created and survive a restart of the server.
const (
	// Invisible: for Rule.For after the creation, a lookup answers 404 and lists omit the
	// machine. Its name is taken nevertheless.
	Invisible Kind = "invisible"
	// StuckCreated, StuckStarting and StuckDestroying: the machine stays in
	// that state for Rule.For; 0 means without end.
	StuckCreated    Kind = "stuck-created"
	StuckStarting   Kind = "stuck-starting"
	StuckDestroying Kind = "stuck-destroying"
	// OOM kills the program Rule.For after its start, as the kernel does when
	// memory is exhausted.
	OOM Kind = "oom"
	// LostExit: the machine ends without an exit event.
	LostExit Kind = "lost-exit"
	// Unreachable: the host does not answer, so the machine has
	// incomplete_config instead of config.
	Unreachable Kind = "unreachable"
)

// The actions of the machines API. Fly limits the rate of each separately.
const (
	Create   = "create"
	Get      = "get"
	List     = "list"
	Wait     = "wait"
	Start    = "start"
	Update   = "update"
	Stop     = "stop"
	Restart  = "restart"
	Signal   = "signal"
	Destroy  = "destroy"
	Metadata = "metadata"
)

// Variants are the values of Rule.Variant: Fly's errors for missing capacity.
func Variants() []string {
	return []string{"memory", "cpu", "none", "insufficient", "volume", "quota", "region"}
}

// Rule selects the subjects of a fault. A subject must match every field that is set.
type Rule struct {
	Kind Kind `json:"kind"`

	App string `json:"app,omitempty"`
	// Name is a pattern for the machine's name, in the syntax of path.Match.
	Name     string            `json:"name,omitempty"`
	Region   string            `json:"region,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Env      map[string]string `json:"env,omitempty"`
	// Action is the action to which the fault applies; empty means "create".
	Action string `json:"action,omitempty"`

	// Times is how often the rule applies to one subject; 0 means every time.
	Times int `json:"times,omitempty"`
	// Rate is the share of matching subjects to which the rule applies, 0 to 1;
	// 0 means all.
	Rate float64 `json:"rate,omitempty"`
	// For is a duration in nanoseconds; each kind documents what 0 means.
	For time.Duration `json:"for,omitempty"`
	// Variant is one of Variants for Capacity; if it is empty, the seed
	// decides.
	Variant string `json:"variant,omitempty"`
}

// Plan is a set of faults. The zero Plan has no faults.
type Plan struct {
	Seed uint64 `json:"seed,omitempty"`
	// RealLimits turns on Fly's rate limits per action and machine, or per
	// action and app if the action has no machine: one request a second with a
	// burst of three; for get, five and ten.
	RealLimits bool   `json:"realLimits,omitempty"`
	Rules      []Rule `json:"rules,omitempty"`
}

// Validate returns an error that lists every problem of the plan.
func (p Plan) Validate() error {
	var problems []error
	for i, rule := range p.Rules {
		for _, problem := range rule.problems() {
			problems = append(problems, fmt.Errorf("rules[%d]: %s", i, problem))
		}
	}
	return errors.Join(problems...)
}

// ofMachine reports whether the fault applies only to requests that change one machine.
func (k Kind) ofMachine() bool { return k == Leased || k == Changed }

func (r Rule) problems() []string {
	var problems []string
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	requests := []Kind{Throttle, BadGateway, BadGatewayAfter, LostAnswer, Slow, Capacity, Leased, Changed}
	machines := []Kind{Invisible, StuckCreated, StuckStarting, StuckDestroying, OOM, LostExit, Unreachable}
	actions := []string{Create, Get, List, Wait, Start, Update, Stop, Restart, Signal, Destroy, Metadata}
	writes := []string{Start, Update, Stop, Restart, Signal, Destroy, Metadata}
	onRequest := slices.Contains(requests, r.Kind)
	if !onRequest && !slices.Contains(machines, r.Kind) {
		add("kind %q is unknown", r.Kind)
	}
	switch {
	case r.Action == "" && r.Kind.ofMachine():
		add("kind %q needs an action, want %s", r.Kind, strings.Join(writes, " or "))
	case r.Action == "":
	case !slices.Contains(actions, r.Action):
		add("action %q is unknown", r.Action)
	case !onRequest || (r.Kind == Capacity && r.Action != Create) || r.Kind.ofMachine() && !slices.Contains(writes, r.Action):
		add("kind %q does not apply to action %q", r.Kind, r.Action)
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
