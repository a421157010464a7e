package suite

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
)

// Capability is something that a test needs of its target, as what the target
// can do.
type Capability string

// The capabilities.
const (
	// Plays: machines run the test's workers (Target.Stage).
	Plays Capability = "run workers of the test's own"
	// Lies: the machines API does what Target.Machines.Lie says.
	Faults Capability = "make the machines API lie"
	// SeeMachines: Target.Machines can be asked.
	SeeMachines Capability = "see the machines"
	// SeeObjects: Target.Buckets can be asked.
	SeeObjects Capability = "see the object store"
	// SampleSource: workers read the sample collection.
	SampleSource Capability = "export the sample collection"
	// AnySource: workers read a collection that has Target.Root.
	AnySource Capability = "export a root"
	// FillPool: Target.MaxMachines is known, and nobody else uses the pool.
	FillPool Capability = "fill the pool of machines"
	// OwnNotFound: what no route knows is answered by Sortie.
	OwnNotFound Capability = "answer for unknown routes itself"
	// OwnEncoding: a request's Content-Encoding is judged by Sortie.
	OwnEncoding Capability = "judge the encoding of a request itself"
	// Bash: machines have bash and curl.
	Bash Capability = "run bash and curl in a machine"
)

// Target is a running Sortie, configured with Settings where it can be.
type Target struct {
	// Name is what a report calls it.
	Name string
	// URL is the API's, with its stage; Token is good for clients.
	URL, Token string
	// Gateway names headers that are added to answers before they are seen.
	Gateway []string
	// Machines is the API where machines are made.
	Machines outside.Machines
	// Buckets is the object store.
	Buckets outside.Buckets
	// Root is an entity that can be exported; empty is the sample's root.
	Root string
	// Stage is where machines find what they are to do.
	Stage *Stage
	// MaxMachines are how many there may be at once.
	MaxMachines int
	// Patience is how long a task may take to do what is awaited; 0 is the
	// client's default.
	Patience time.Duration
	// Lacks says what the target cannot do, and why.
	Lacks map[Capability]string
}

// Settings are what a target is to be configured with, beside its own addresses
// and secrets: limits that many tests can share. What a test wants otherwise it
// asks for with its exports.
func Settings() map[string]string {
	return map[string]string{
		"SORTIE_MAX_MACHINES": "12", "SORTIE_START_TIMEOUT": "1m",
		"SORTIE_FURTHER_STARTS": "1", "SORTIE_MAX_ATTEMPTS": "2",
		"SORTIE_RETRY_DELAY": "1s", "SORTIE_RETRY_MAX_DELAY": "2s",
		"SORTIE_REDIRECT_OVER": "8388608",
	}
}

// lack says which of the needs the target has not, and why.
func (t Target) lack(needs []Capability) (what, why string, lacks bool) {
	for _, need := range needs {
		if why, lacks := t.Lacks[need]; lacks {
			return string(need), why, true
		}
	}
	return "", "", false
}

// tell lists what the target could not do, and for which tests.
func (t Target) tell(to *testing.T, tests []Test) {
	to.Helper()
	if len(t.Lacks) == 0 {
		to.Logf("%s can do all that the suite asks for", t.Name)
	}
	for _, need := range slices.Sorted(maps.Keys(t.Lacks)) {
		var skipped []string
		for _, test := range tests {
			if slices.Contains(test.Needs, need) {
				skipped = append(skipped, test.Name)
			}
		}
		if need == SeeMachines || need == SeeObjects {
			skipped = append(skipped, "half of "+nothing)
		}
		to.Logf("%s cannot %s: %s. Without it: %s", t.Name, need, t.Lacks[need], strings.Join(skipped, ", "))
	}
}

// lie exchanges what goes wrong, where something can.
func (t Target) lie(ctx context.Context, plan plan) error {
	if _, _, lacks := t.lack([]Capability{Faults}); lacks {
		return nil
	}
	return t.Machines.Lie(ctx, plan)
}
