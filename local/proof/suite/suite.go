package suite

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/await"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/local/twin/flymachines/faults"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

type plan = faults.Plan

// Test checks one behaviour of every Sortie deployment.
type Test struct {
	// Name describes the behaviour.
	Name string
	// Requires lists the capabilities that the target must have.
	Requires []Capability
	// Exclusive tests run after the others, one at a time. A test with throttled starts is
	// exclusive, because Sortie then paces all starts of the pool. RealLimits enables the real
	// rate limits of the machines API for such a test.
	Exclusive, RealLimits bool
	// Faults are injected into the machines of the test's batches. Keys are batch names.
	Faults map[string][]faults.Rule
	Run    func(c *Case)
	// NeedsAll tests check what all other tests have caused.
	NeedsAll bool
}

// Tests returns all tests.
func Tests() []Test {
	return slices.Concat(exports(), downloads(), workers(), cancels(), pools(), capacity(), fallbacks(), explanations(), machineFaults(), idempotencyKeys(), malformed(), access(), tenants(), callbacks(), workerCalls(), lists(), programs(), jobs(), jobRuns(), schedules(), constraints(), actions(), endActions(), childRuns(), scenarios(), hooks(), secrets(), eventLists(), payloads(), eventStreams(), webhooks(), webhookLog(), artifacts(), catalogs(), inferenceTasks(), services(), routes(), replicaMachines(), consolePages(), eventExamples())
}

// sampled returns every n-th test and those named in also, without those that need all others.
// Tests of one subject are adjacent, so most subjects have some. unknown are names of no test.
func sampled(tests []Test, n int, also []string) (selected []Test, unknown []string) {
	unknown = slices.Clone(also)
	for i, test := range tests {
		unknown = slices.DeleteFunc(unknown, func(name string) bool { return name == test.Name })
		if n <= 1 || !test.NeedsAll && (i%n == 0 || slices.Contains(also, test.Name)) {
			selected = append(selected, test)
		}
	}
	return selected, unknown
}

// Case is the context of one test: a client of its target, and its own batch names.
type Case struct {
	*outside.Client
	Target Target

	name, round string
	tasks       *tasks
	hooks       *receiver
	// stored are the paths of the jobs that the test has stored.
	stored []string
	// subscribed are the paths of the test's webhooks.
	subscribed []string
}

// tasks collects the ids of all started tasks.
type tasks struct {
	mu  sync.Mutex
	all []string
}

func (t *tasks) add(task string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, task)
}

// leftoversTest is the name of the last test.
const leftoversTest = "no leftovers"

// Run runs the tests against the target, or a sample of them, and then checks that they leave nothing behind. The log
// ends with the missing capabilities of the target.
func Run(t *testing.T, target Target) {
	t.Helper()
	tests, unknown := sampled(Tests(), target.Every, target.Also)
	if len(unknown) > 0 {
		t.Errorf("got no tests %q in the suite, want the tests of the sample", unknown)
	}
	started, hooks := &tasks{}, newReceiver(t, target.Certificate)
	number := make([]byte, 4)
	if _, err := rand.Read(number); err != nil {
		t.Fatal(err)
	}
	newCase := func(t *testing.T, test Test) *Case {
		client := &outside.Client{T: t, URL: target.URL, Token: target.Token, Gateway: target.Gateway, Remapped: target.Remapped, Timeout: target.Timeout}
		return &Case{Client: client, Target: target, name: test.Name, round: hex.EncodeToString(number), tasks: started, hooks: hooks}
	}
	t.Cleanup(func() { target.logLimitations(t, tests) })
	var shared plan
	for _, test := range tests {
		if !test.Exclusive {
			shared.Rules = append(shared.Rules, newCase(t, test).rules(test)...)
		}
	}
	if err := target.setFaults(t.Context(), shared); err != nil {
		t.Fatal(err)
	}
	t.Run("parallel", func(t *testing.T) {
		for _, test := range tests {
			if !test.Exclusive {
				t.Run(test.Name, func(t *testing.T) {
					t.Parallel()
					newCase(t, test).run(test)
				})
			}
		}
	})
	for _, test := range tests {
		if test.Exclusive {
			t.Run(test.Name, func(t *testing.T) { newCase(t, test).run(test, plan{RealLimits: test.RealLimits}) })
		}
	}
	t.Run(leftoversTest, func(t *testing.T) { newCase(t, Test{}).checkLeftovers() })
}

// run runs the test. If a fault plan is given, it installs that first.
func (c *Case) run(test Test, faultPlan ...plan) {
	if what, why, lacks := c.Target.lacks(test.Requires); lacks {
		c.T.Skipf("%s cannot %s: %s", c.Target.Name, what, why)
	}
	for _, p := range faultPlan {
		p.Rules = c.rules(test)
		if err := c.Target.setFaults(c.T.Context(), p); err != nil {
			c.T.Fatal(err)
		}
	}
	defer c.removeJobs()
	defer c.removeWebhooks()
	test.Run(c)
}

// eventually calls look until it returns true. It fails the test after the timeout.
func (c *Case) eventually(what string, look func() bool) {
	c.T.Helper()
	await.Within(c.T, cmp.Or(c.Timeout, outside.DefaultTimeout), what, look)
}

// rules returns the test's faults, limited to the machines of its batches, or of a region that
// only this test uses.
func (c *Case) rules(test Test) []faults.Rule {
	var all []faults.Rule
	for batch, rules := range test.Faults {
		for _, rule := range rules {
			if rule.Region == "" {
				rule.Env = map[string]string{"BATCH_ID": c.Batch(batch)}
			}
			all = append(all, rule)
		}
	}
	return all
}

// notBatchID matches characters that a batch id cannot contain, and the separators used here.
var notBatchID = regexp.MustCompile(`[^A-Za-z0-9]+`)

// Batch returns the test's batch id with this name. It is unique to this run of the suite.
func (c *Case) Batch(name string) string {
	return notBatchID.ReplaceAllString(c.name, "-") + "." + name + "." + c.round
}

// StartScripted starts an export of the sample's root whose worker runs the script instead; see
// stacktest.Play.
func (c *Case) StartScripted(name, script string, policy ...contract.Policy) (task string) {
	c.T.Helper()
	c.Target.Scripts.Set(c.T, c.Batch(name), script)
	return c.Start(name, contract.ExportRequest{}, policy...)
}

// StartShort starts the shortest successful export of the target.
func (c *Case) StartShort(name string) (task string) {
	c.T.Helper()
	return c.Start(name, c.shortRequest(name))
}

func (c *Case) shortRequest(name string) contract.ExportRequest {
	c.T.Helper()
	if _, _, lacks := c.Target.lacks([]Capability{ScriptedWorkers}); !lacks {
		c.Target.Scripts.Set(c.T, c.Batch(name), "success")
	}
	return contract.ExportRequest{PI: c.root(), BatchID: new(c.Batch(name))}
}

// root returns the entity for short exports.
func (c *Case) root() string { return cmp.Or(c.Target.Root, samples.SampleRoot) }

// Start starts a MODS export in the batch with this name. The default root is the sample's.
func (c *Case) Start(name string, request contract.ExportRequest, policy ...contract.Policy) (task string) {
	c.T.Helper()
	if request.PI == "" {
		request.PI = samples.SampleRoot
	}
	for _, p := range policy {
		request.Policy = &p
	}
	request.BatchID = new(c.Batch(name))
	task = c.Export("mods", request)
	c.tasks.add(task)
	return task
}
