package suite

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/twin/flymachines/faults"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// faultCase is a fault of the machines API with the expected result of a run whose machines it
// affects.
type faultCase struct {
	name  string
	rules []faults.Rule
	state string
	// attempt is the number of the last attempt. code is the fault code of the run.
	attempt int
	code    string
	// events is a regular expression for the events with a fault, in order.
	events string
	// maxMachines limits the machines created for the run; there is at least
	// one per attempt.
	maxMachines int
	// startTimeout is in seconds. 0 means the value in Settings, which exceeds all injected
	// delays.
	startTimeout int
	// exclusive is Test.Exclusive.
	exclusive bool
}

func machineFaults() []Test {
	var list []Test
	for _, l := range append(generalFaults(), startTimeouts()...) {
		list = append(list, Test{
			Name: "machines API fault: " + l.name, Requires: []Capability{Faults, SeeMachines, SampleSource},
			Exclusive: l.exclusive, Faults: map[string][]faults.Rule{"one": l.rules}, Run: func(c *Case) { c.checkFault(l) },
		})
	}
	return list
}

// firstAttempts selects the machines of first attempts.
func firstAttempts() map[string]string { return map[string]string{"attempt": "1"} }

// retried returns the expected events of an attempt that is retried.
func retried(code string) string { return "attempt_ended:" + code + " retry_scheduled:" + code }

// notRetried returns the expected events of a run's last attempt.
func notRetried(code string) string { return "attempt_ended:" + code + " failed:" + code }

func generalFaults() []faultCase {
	// The outcome of the creation is unknown; the next try adopts the machine.
	const unclear = "(start_refused:UNAVAILABLE ?)*"
	list := []faultCase{
		{name: "throttled", rules: []faults.Rule{{Kind: faults.Throttle, Times: 3}}, events: "(start_refused:THROTTLED ?){3}", exclusive: true},
		{
			name: "no capacity", rules: []faults.Rule{{Kind: faults.Capacity}}, state: "Failed", code: "CAPACITY",
			events: "start_refused:CAPACITY " + notRetried("CAPACITY"),
		},
		{name: "three bad gateways", rules: []faults.Rule{{Kind: faults.BadGateway, Times: 3}}},
		{name: "five bad gateways", rules: []faults.Rule{{Kind: faults.BadGateway, Times: 5}}, events: "start_refused:UNAVAILABLE"},
		{
			// The first machine starts late, so that it still exists when the client repeats
			// the request.
			name:  "bad gateway after creation",
			rules: []faults.Rule{{Kind: faults.BadGatewayAfter, Times: 1}, {Kind: faults.StuckCreated, For: 4 * time.Second}},
		},
		{
			// The client repeats the request after the first machine is gone and its name is
			// free again.
			name:  "created twice",
			rules: []faults.Rule{{Kind: faults.Slow, For: 3 * time.Second}, {Kind: faults.BadGatewayAfter, Times: 1}}, maxMachines: 2,
		},
		{name: "lost response", rules: []faults.Rule{{Kind: faults.LostAnswer, Times: 1}}, events: unclear},
		{name: "slow", rules: []faults.Rule{{Kind: faults.Slow, For: 2 * time.Second}}},
		{name: "invisible", rules: []faults.Rule{{Kind: faults.Invisible, For: 3 * time.Second}}},
		{
			name:  "lost response and invisible",
			rules: []faults.Rule{{Kind: faults.LostAnswer, Times: 1}, {Kind: faults.Invisible, For: 3 * time.Second}}, events: unclear,
		},
		{name: "stuck destroying", rules: []faults.Rule{{Kind: faults.StuckDestroying, For: 4 * time.Second}}},
		{name: "out of memory", rules: []faults.Rule{{Kind: faults.OOM, Metadata: firstAttempts()}}, attempt: 2, events: retried("OUT_OF_MEMORY"), maxMachines: 2},
		{
			name: "out of memory in every attempt", rules: []faults.Rule{{Kind: faults.OOM}}, state: "Failed", attempt: 2, code: "OUT_OF_MEMORY",
			events: retried("OUT_OF_MEMORY") + " " + notRetried("OUT_OF_MEMORY"), maxMachines: 2,
		},
		{name: "lost exit event", rules: []faults.Rule{{Kind: faults.LostExit}}},
		{name: "unreachable", rules: []faults.Rule{{Kind: faults.Unreachable}}},
	}
	for _, variant := range faults.Variants() {
		list = append(list, faultCase{
			name: "no capacity, " + variant, rules: []faults.Rule{{Kind: faults.Capacity, Variant: variant, Times: 1}}, events: "start_refused:CAPACITY",
		})
	}
	return list
}

// startTimeouts returns the faults that delay a start beyond its timeout.
func startTimeouts() []faultCase {
	const limit = 8
	late := func(name string, rule faults.Rule) faultCase {
		rule.Metadata = firstAttempts()
		return faultCase{name: name, rules: []faults.Rule{rule}, attempt: 2, events: retried("START_TIMEOUT"), maxMachines: 2, startTimeout: limit}
	}
	return []faultCase{
		late("stuck created", faults.Rule{Kind: faults.StuckCreated}),
		late("stuck starting", faults.Rule{Kind: faults.StuckStarting}),
		late("start slower than the timeout", faults.Rule{Kind: faults.Slow, For: 10 * time.Second}),
		{
			name: "stuck starting in every attempt", rules: []faults.Rule{{Kind: faults.StuckStarting}}, state: "Failed", attempt: 2, code: "START_TIMEOUT",
			events: retried("START_TIMEOUT") + " " + notRetried("START_TIMEOUT"), maxMachines: 2, startTimeout: limit,
		},
	}
}

// checkFault waits for the end of a run and compares it with the expected result.
func (c *Case) checkFault(l faultCase) {
	if l.state == "" {
		l.state = "Completed"
	}
	l.attempt = max(l.attempt, 1)
	if l.maxMachines == 0 && l.code != "CAPACITY" {
		l.maxMachines = 1
	}
	var policy contract.Policy
	if l.startTimeout > 0 {
		policy.StartTimeoutSeconds = &l.startTimeout
	}
	task := c.Start("one", contract.ExportRequest{}, policy)
	status := c.End(task)
	if status.State != l.state || status.Attempt != l.attempt || status.ErrorCode != l.code {
		c.T.Errorf("got %+v, want %s with code %q in attempt %d", status, l.state, l.code, l.attempt)
	}
	if events := c.Faults(task); !regexp.MustCompile("^" + l.events + "$").MatchString(events) {
		c.T.Errorf("got fault events %q, want %q", events, l.events)
	}
	if created := c.awaitMachines(task, min(l.attempt, l.maxMachines)); len(created) > l.maxMachines {
		c.T.Errorf("got machines %v, want at most %d", created, l.maxMachines)
	}
	file := c.Call(http.MethodGet, "/download/"+task, "")
	switch {
	case status.State != "Completed":
		if file.Status != http.StatusBadRequest {
			c.T.Errorf("GET /download of a failed run: got %d, want 400", file.Status)
		}
	case file.Status != http.StatusOK || bytes.Count(file.Body, []byte("<mods ")) != 1 || int64(len(file.Body)) != *status.OutputFileSize:
		c.T.Errorf("GET /download: got %d with %d bytes, want 200 with %d bytes", file.Status, len(file.Body), *status.OutputFileSize)
	}
}

// awaitMachines waits until the API lists at least that many machines of a task, including
// deleted ones, and returns them. A slow creation can finish after the run's end.
func (c *Case) awaitMachines(task string, least int) []outside.Machine {
	var created []outside.Machine
	c.eventually(fmt.Sprintf("%d machines of %s", least, task), func() (ok bool) {
		var err error
		created, err = c.Target.Machines.Of(c.T.Context(), task)
		return err == nil && len(created) >= least
	})
	return created
}
