package suite

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/local/twin/flymachines/faults"
	"github.com/sortie-dev/sortie/shared/contract"
)

type plan = faults.Plan

// Test is one thing that every Sortie does.
type Test struct {
	// Name is the claim.
	Name string
	// Needs are what the target has to be able to do.
	Needs []Capability
	// Alone tests have the target for themselves; Limits turns on the real rate
	// limits of the machines API for one of them.
	Alone, Limits bool
	// Lies are what the machines API does to the machines of the test's batches,
	// by the batches' names.
	Faults map[string][]faults.Rule
	// Run is the test.
	Run func(c *Case)
}

// Tests lists all of them.
func Tests() []Test {
	return slices.Concat(exports(), downloads(), workers(), lies(), pools(), repeats(), rubbish(), access(), callbacks(), lists())
}

// Case is what one test has: its target as a client, and names of its own.
type Case struct {
	*outside.Client
	Target Target

	name, round string
	tasks       *tasks
}

// tasks are all that a round has begun.
type tasks struct {
	mu  sync.Mutex
	all []string
}

func (t *tasks) add(task string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, task)
}

// nothing is the last test.
const nothing = "nothing is left"

// Run plays all tests against the target, and then looks whether they have left
// anything behind. t's log ends with what the target could not do.
func Run(t *testing.T, target Target) {
	t.Helper()
	tests, begun := Tests(), &tasks{}
	number := make([]byte, 4)
	if _, err := rand.Read(number); err != nil {
		t.Fatal(err)
	}
	newCase := func(t *testing.T, test Test) *Case {
		client := &outside.Client{T: t, URL: target.URL, Token: target.Token, Gateway: target.Gateway, Patience: target.Patience}
		return &Case{client, target, test.Name, hex.EncodeToString(number), begun}
	}
	t.Cleanup(func() { target.tell(t, tests) })
	for _, test := range tests {
		if test.Alone {
			t.Run(test.Name, func(t *testing.T) { newCase(t, test).play(test, plan{RealLimits: test.Limits}) })
		}
	}
	var together plan
	for _, test := range tests {
		if !test.Alone {
			together.Rules = append(together.Rules, newCase(t, test).rules(test)...)
		}
	}
	if err := target.lie(t.Context(), together); err != nil {
		t.Fatal(err)
	}
	t.Run("together", func(t *testing.T) {
		for _, test := range tests {
			if !test.Alone {
				t.Run(test.Name, func(t *testing.T) {
					t.Parallel()
					newCase(t, test).play(test)
				})
			}
		}
	})
	t.Run(nothing, func(t *testing.T) { newCase(t, Test{}).nothingLeft() })
}

// play runs the test, under a plan of its own where one is given.
func (c *Case) play(test Test, own ...plan) {
	if what, why, lacks := c.Target.lack(test.Needs); lacks {
		c.T.Skipf("%s cannot %s: %s", c.Target.Name, what, why)
	}
	for _, p := range own {
		p.Rules = c.rules(test)
		if err := c.Target.lie(c.T.Context(), p); err != nil {
			c.T.Fatal(err)
		}
	}
	test.Run(c)
}

// rules are the test's lies, told to its own machines.
func (c *Case) rules(test Test) []faults.Rule {
	var all []faults.Rule
	for batch, rules := range test.Faults {
		for _, rule := range rules {
			rule.Env = map[string]string{"BATCH_ID": c.Batch(batch)}
			all = append(all, rule)
		}
	}
	return all
}

// notBatch is what a batch id may not have, and what separates its parts here.
var notBatch = regexp.MustCompile(`[^A-Za-z0-9]+`)

// Batch is a batch of the test's own, in this round.
func (c *Case) Batch(name string) string {
	return notBatch.ReplaceAllString(c.name, "-") + "." + name + "." + c.round
}

// Play begins an export of the sample's root whose worker does what the words
// say instead: see stacktest.Play.
func (c *Case) Play(name, words string, policy ...contract.Policy) (task string) {
	c.T.Helper()
	c.Target.Stage.Set(c.T, c.Batch(name), words)
	return c.Begin(name, contract.ExportRequest{}, policy...)
}

// Quick begins an export that succeeds, the quickest that the target can make.
func (c *Case) Quick(name string) (task string) {
	c.T.Helper()
	return c.Begin(name, c.quick(name))
}

// quick is such an export's request.
func (c *Case) quick(name string) contract.ExportRequest {
	c.T.Helper()
	if _, _, lacks := c.Target.lack([]Capability{Plays}); !lacks {
		c.Target.Stage.Set(c.T, c.Batch(name), "success")
	}
	return contract.ExportRequest{PI: cmp.Or(c.Target.Root, samples.SampleRoot), BatchID: c.Batch(name)}
}

// Begin begins an export as MODS, of the sample's root where nothing else is
// asked for, in a batch of the test's.
func (c *Case) Begin(name string, request contract.ExportRequest, policy ...contract.Policy) (task string) {
	c.T.Helper()
	if request.PI == "" {
		request.PI = samples.SampleRoot
	}
	for _, p := range policy {
		request.Policy = &p
	}
	request.BatchID = c.Batch(name)
	task = c.Export("mods", request)
	c.tasks.add(task)
	return task
}
