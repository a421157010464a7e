package faults

import (
	"encoding/binary"
	"hash/fnv"
	"maps"
	"path"
	"slices"
	"sync"
)

// Subject is whom a rule may strike. Name and what follows are empty for
// requests that are not about one machine.
type Subject struct {
	App, Name, Region string
	Metadata, Env     map[string]string
}

// Injector answers for one plan. It is safe for use by many goroutines.
type Injector struct {
	plan Plan

	mu    sync.Mutex
	asked map[string]count
}

type count struct{ asked, struck int }

// mostSubjects bounds what is remembered; over it, Times counts anew.
const mostSubjects = 1 << 17

// New makes the injector of a plan, or says what is wrong with the plan.
func New(plan Plan) (*Injector, error) {
	if err := plan.Validate(); err != nil {
		return nil, err
	}
	return &Injector{plan: plan, asked: map[string]count{}}, nil
}

// Plan is what the injector was made of.
func (i *Injector) Plan() Plan { return i.plan }

// Strike asks whether a fault of this kind strikes the action on the subject
// now, and gives the first rule that says so. Action is not looked at for the
// kinds that strike machines.
func (i *Injector) Strike(kind Kind, action string, subject Subject) (Rule, bool) {
	for n, rule := range i.plan.Rules {
		if rule.Kind != kind || !rule.fits(action, subject) {
			continue
		}
		if chance, struck := i.decide(n, rule, action, subject); struck {
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
	number(uint64(n))
	for _, part := range []string{action, s.App, s.Name} {
		hash.Write(append([]byte(part), 0))
	}
	if s.Name == "" { // unnamed machines are told apart by what they carry
		for _, key := range slices.Sorted(maps.Keys(s.Metadata)) {
			hash.Write([]byte(key + "=" + s.Metadata[key] + "\x00"))
		}
	}
	key := string(hash.Sum(nil))

	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.asked) >= mostSubjects {
		clear(i.asked)
	}
	c := i.asked[key]
	number(uint64(c.asked))
	chance := mix(hash.Sum64())
	c.asked++
	struck := (rule.Times == 0 || c.struck < rule.Times) &&
		(rule.Rate == 0 || float64(chance>>11)/(1<<53) < rule.Rate)
	if struck {
		c.struck++
	}
	i.asked[key] = c
	return chance, struck
}

// mix spreads a hash over all bits (the finalizer of SplitMix64), which FNV
// does not do for its last bytes.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
