package suite

import (
	"bytes"
	"context"
	"net/http"
	"regexp"
	"time"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/twin/flymachines/faults"
	"github.com/sortie-dev/sortie/shared/contract"
)

// lie is one way in which the machines API lies about the machines of a run,
// and what the run has to show for it.
type lie struct {
	name  string
	rules []faults.Rule
	state string
	// attempt is the last one, code the fault that the run ended with.
	attempt int
	code    string
	// told are the events that carry a fault, in order; a regular expression.
	told string
	// most are the machines that were ever made for the run: at least one an
	// attempt, and at most so many.
	most int
	// start is how long a machine may take to start, in seconds; 0 is what the
	// settings say, which is enough for a machine that is late.
	start int
}

func lies() []Test {
	var list []Test
	for _, l := range append(troubles(), lateStarts()...) {
		list = append(list, Test{
			Name: "the machines API lies: " + l.name, Needs: []Capability{Faults, SeeMachines, SampleSource},
			Faults: map[string][]faults.Rule{"one": l.rules}, Run: func(c *Case) { c.shows(l) },
		})
	}
	return list
}

// first is a rule's match for machines of first attempts.
func first() map[string]string { return map[string]string{"attempt": "1"} }

// again are the events of an attempt that is followed by another.
func again(code string) string { return "attempt_ended:" + code + " retry_scheduled:" + code }

// last are those of an attempt that is not.
func last(code string) string { return "attempt_ended:" + code + " failed:" + code }

func troubles() []lie {
	// A creation that nobody knows the outcome of; the next one finds its machine.
	const unclear = "(start_refused:UNAVAILABLE ?)*"
	list := []lie{
		{name: "throttled", rules: []faults.Rule{{Kind: faults.Throttle, Times: 3}}, told: "(start_refused:THROTTLED ?){3}"},
		{
			name: "no room", rules: []faults.Rule{{Kind: faults.Capacity}}, state: "Failed", code: "CAPACITY",
			told: "start_refused:CAPACITY " + last("CAPACITY"),
		},
		{name: "few bad gateways", rules: []faults.Rule{{Kind: faults.BadGateway, Times: 3}}},
		{name: "many bad gateways", rules: []faults.Rule{{Kind: faults.BadGateway, Times: 5}}, told: "start_refused:UNAVAILABLE"},
		{name: "a bad gateway after", rules: []faults.Rule{{Kind: faults.BadGatewayAfter, Times: 1}}},
		{
			// The client repeats the request when the first machine is gone and its
			// name free again.
			name:  "made twice",
			rules: []faults.Rule{{Kind: faults.Slow, For: 3 * time.Second}, {Kind: faults.BadGatewayAfter, Times: 1}}, most: 2,
		},
		{name: "a lost answer", rules: []faults.Rule{{Kind: faults.LostAnswer, Times: 1}}, told: unclear},
		{name: "slow", rules: []faults.Rule{{Kind: faults.Slow, For: 2 * time.Second}}},
		{name: "invisible", rules: []faults.Rule{{Kind: faults.Invisible, For: 3 * time.Second}}},
		{
			name:  "lost and invisible",
			rules: []faults.Rule{{Kind: faults.LostAnswer, Times: 1}, {Kind: faults.Invisible, For: 3 * time.Second}}, told: unclear,
		},
		{name: "stuck destroying", rules: []faults.Rule{{Kind: faults.StuckDestroying, For: 4 * time.Second}}},
		{name: "out of memory", rules: []faults.Rule{{Kind: faults.OOM, Metadata: first()}}, attempt: 2, told: again("OUT_OF_MEMORY"), most: 2},
		{
			name: "always out of memory", rules: []faults.Rule{{Kind: faults.OOM}}, state: "Failed", attempt: 2, code: "OUT_OF_MEMORY",
			told: again("OUT_OF_MEMORY") + " " + last("OUT_OF_MEMORY"), most: 2,
		},
		{name: "a lost exit", rules: []faults.Rule{{Kind: faults.LostExit}}},
		{name: "unreachable", rules: []faults.Rule{{Kind: faults.Unreachable}}},
	}
	for _, variant := range faults.Variants() {
		list = append(list, lie{
			name: "no room, " + variant, rules: []faults.Rule{{Kind: faults.Capacity, Variant: variant, Times: 1}}, told: "start_refused:CAPACITY",
		})
	}
	return list
}

// lateStarts take longer than a machine may take to start.
func lateStarts() []lie {
	const limit = 8
	late := func(name string, rule faults.Rule) lie {
		rule.Metadata = first()
		return lie{name: name, rules: []faults.Rule{rule}, attempt: 2, told: again("START_TIMEOUT"), most: 2, start: limit}
	}
	return []lie{
		late("stuck created", faults.Rule{Kind: faults.StuckCreated}),
		late("stuck starting", faults.Rule{Kind: faults.StuckStarting}),
		late("too slow", faults.Rule{Kind: faults.Slow, For: 10 * time.Second}),
		{
			name: "never starting", rules: []faults.Rule{{Kind: faults.StuckStarting}}, state: "Failed", attempt: 2, code: "START_TIMEOUT",
			told: again("START_TIMEOUT") + " " + last("START_TIMEOUT"), most: 2, start: limit,
		},
	}
}

// shows follows a run to its end and holds it to what a lie makes of it.
func (c *Case) shows(l lie) {
	if l.state == "" {
		l.state = "Completed"
	}
	l.attempt = max(l.attempt, 1)
	if l.most == 0 && l.code != "CAPACITY" {
		l.most = 1
	}
	var policy contract.Policy
	if l.start > 0 {
		policy.StartTimeoutSeconds = &l.start
	}
	task := c.Begin("one", contract.ExportRequest{}, policy)
	status := c.End(task)
	if status.State != l.state || status.Attempt != l.attempt || status.ErrorCode != l.code {
		c.T.Errorf("it ended as %+v", status)
	}
	if told := c.Faults(task); !regexp.MustCompile("^" + l.told + "$").MatchString(told) {
		c.T.Errorf("its events tell %q, want %q", told, l.told)
	}
	if made := c.made(task, min(l.attempt, l.most)); len(made) > l.most {
		c.T.Errorf("its machines were %v, want %d at most", made, l.most)
	}
	file := c.Call(http.MethodGet, "/download/"+task, "")
	switch {
	case status.State != "Completed":
		if file.Status != http.StatusBadRequest {
			c.T.Errorf("GET /download of a failure: %d", file.Status)
		}
	case file.Status != http.StatusOK || bytes.Count(file.Body, []byte("<mods ")) != 1 || int64(len(file.Body)) != *status.OutputFileSize:
		c.T.Errorf("GET /download: %d, %d bytes of %d", file.Status, len(file.Body), *status.OutputFileSize)
	}
}

// made are the machines that were ever made for a task, once there are so many:
// one that is made slowly comes when its run may have ended.
func (c *Case) made(task string, least int) []outside.Machine {
	ctx, cancel := context.WithTimeout(c.T.Context(), max(c.Patience, time.Minute))
	defer cancel()
	look := time.NewTicker(200 * time.Millisecond)
	defer look.Stop()
	for {
		made, err := c.Target.Machines.Of(ctx, task)
		if err == nil && len(made) >= least {
			return made
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			c.T.Fatalf("its machines are %v, and should be %d at least (%v)", made, least, err)
		}
	}
}
