package faults

import (
	"encoding/binary"
	"hash/fnv"
	"maps"
	"path"
	"slices"
	"sync"
)

// Subject is the target of a rule. Name and the fields below it are empty for requests that are
// not about one machine.
type Subject struct {
	App, Name, Region string
	Metadata, Env     map[string]string
}

// Injector decides which faults of one plan apply. It is safe for concurrent use.
type Injector struct {
	plan Plan

	mu        sync.Mutex
	evaluated map[string]count
}

type count struct {
	evaluated uint64
	injected  int
}

// mostSubjects is the largest number of remembered subjects. Above it, the
// counters of Times start again.
const mostSubjects = 1 << 17

// New returns the injector of a plan, or an error that lists the plan's problems.
func New(plan Plan) (*Injector, error) {
	if err := plan.Validate(); err != nil {
		return nil, err
	}
	return &Injector{plan: plan, evaluated: map[string]count{}}, nil
}

// Plan returns the injector's plan.
func (i *Injector) Plan() Plan { return i.plan }

// Inject decides whether a fault of this kind applies to the action on the subject now. It
// returns the first rule that applies. Action is ignored for the kinds that apply to machines.
func (i *Injector) Inject(kind Kind, action string, subject Subject) (Rule, bool) {
	for n, rule := range i.plan.Rules {
		if rule.Kind != kind || !rule.fits(action, subject) {
			continue
		}
		if chance, injected := i.decide(n, rule, action, subject); injected {
			if rule.Variant == "" {
				rule.Variant = Variants()[chance%uint64(len(Variants()))]
			}
			return rule, true
		}
	}
	return Rule{}, false
}

func (r Rule) fits(action string, s Subject) bool {
	wanted := r.Action
	if wanted == "" {
		wanted = Create
	}
	if action != wanted || (r.App != "" && r.App != s.App) || (r.Region != "" && r.Region != s.Region) {
		return false
	}
	if matched, _ := path.Match(r.Name, s.Name); r.Name != "" && !matched {
		return false
	}
	return within(r.Metadata, s.Metadata) && within(r.Env, s.Env)
}

func within(part, whole map[string]string) bool {
	for key, value := range part {
		if have, ok := whole[key]; !ok || have != value {
			return false
		}
	}
	return true
}

func (i *Injector) decide(n int, rule Rule, action string, s Subject) (uint64, bool) {
	hash := fnv.New64a()
	number := func(v uint64) { hash.Write(binary.BigEndian.AppendUint64(nil, v)) }
	number(i.plan.Seed)
	number(uint64(n)) //nolint:gosec // the index of a rule
	for _, part := range []string{action, s.App, s.Name} {
		hash.Write(append([]byte(part), 0))
	}
	if s.Name == "" { // unnamed machines are distinguished by their metadata and environment
		for _, key := range slices.Sorted(maps.Keys(s.Metadata)) {
			hash.Write([]byte(key + "=" + s.Metadata[key] + "\x00"))
		}
	}
	key := string(hash.Sum(nil))

	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.evaluated) >= mostSubjects {
		clear(i.evaluated)
	}
	c := i.evaluated[key]
	number(c.evaluated)
	chance := mix(hash.Sum64())
	c.evaluated++
	injected := (rule.Times == 0 || c.injected < rule.Times) &&
		(rule.Rate == 0 || float64(chance>>11)/(1<<53) < rule.Rate)
	if injected {
		c.injected++
	}
	i.evaluated[key] = c
	return chance, injected
}

// mix spreads a hash over all bits (the finalizer of SplitMix64), which FNV
// does not do for its last bytes.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
