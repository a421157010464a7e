package scenario_test

import (
	"testing"
)

func TestMissedFiringsHaveTheirReasons(t *testing.T) {
	t.Parallel()
	r := play(t, `
start: "2027-03-01"
days: 1
startTime: 0s
jobs:
  # Every second firing of a job of 90 minutes is skipped.
  - job: {id: long, image: a, schedule: 0 * * * *, constraints: {maxConcurrentRuns: 1, maxAllowedRunTime: 3h}}
    duration: {fixed: 90m}
  # The server is stopped at 12:00, 13:00 and 14:00, and starts later than the deadline of a firing.
  - job: {id: punctual, image: a, schedule: 0 * * * *, startingDeadline: 10m}
    duration: {fixed: 1m}
  # The run before fails at 06:30 and 18:30.
  - job: {id: upstream, image: a, schedule: "30 6,18 * * *", retryConfig: {maxRetries: 0}}
    duration: {fixed: 1m}
    fails: {share: 1, code: 3}
  - job: {id: downstream, image: a, after: [upstream]}
    duration: {fixed: 1m}
faults:
  - {type: stopped_server, at: "2027-03-01T11:50:00Z", for: 160m}
`)
	long, punctual, upstream, downstream := r.Jobs[0], r.Jobs[1], r.Jobs[2], r.Jobs[3]
	if long.Due != 23 || long.Started+long.Missed != 23 || long.MissedBy["skipped by maxConcurrentRuns"] < 8 {
		t.Errorf("got %+v", long)
	}
	if punctual.Due != 23 || punctual.Started != 20 || punctual.Missed != 3 || punctual.MissedBy["missed"] != 3 {
		t.Errorf("got %+v", punctual)
	}
	if upstream.Failed != 2 || upstream.FailedBy["PROGRAM_EXIT 3"] != 2 || upstream.Retries != 0 {
		t.Errorf("got %+v", upstream)
	}
	if downstream.Due != 2 || downstream.Missed != 2 || downstream.MissedBy["upstream_failed"] != 2 || downstream.Runs != 0 {
		t.Errorf("got %+v", downstream)
	}
}

func TestPaceOfStarts(t *testing.T) {
	t.Parallel()
	r := play(t, `
start: "2027-03-01"
days: 1
startTime: 0s
limits: {machines: 0, startsPerSecond: 0.05}
jobs:
  - job: {id: a, image: a, schedule: 0 6 * * *}
    duration: {fixed: 1m}
  - job: {id: b, image: a, schedule: 0 6 * * *}
    duration: {fixed: 1m}
  - job: {id: c, image: a, schedule: 0 6 * * *}
    duration: {fixed: 1m}
`)
	// One start in 20 s. A deferred start is granted by the next sweep, once a minute.
	if w := r.Whole.Waits; w.Count != 3 || w.Median < 20 || w.Median > 65 || w.Longest < 40 || w.Longest > 125 {
		t.Errorf("got waits %+v", w)
	}
}

func TestCostsAndChildren(t *testing.T) {
	t.Parallel()
	r := play(t, `
start: "2027-03-01"
days: 1
startTime: 0s
jobs:
  - job: {id: parts, image: a, schedule: 0 6 * * *, matrix: {part: [1, 2, 3]}, resources: {cpus: 2, memoryMB: 1024}}
    duration: {fixed: 10m}
prices:
  - {cpus: 2, memoryMB: 1024, perSecond: 0.01}
`)
	// Three children of 600 s at 0.01 USD are 18 USD, and a few seconds for their ends.
	if j := r.Jobs[0]; j.Due != 1 || j.Cost < 18 || j.Cost > 18.5 || j.MachineHours < 0.5 || j.MachineHours > 0.52 || r.Whole.MostMachines != 3 || r.Whole.Cost != j.Cost {
		t.Errorf("got %+v, %+v", j, r.Whole)
	}
}

func TestClockThatJumps(t *testing.T) {
	t.Parallel()
	r := play(t, `
start: "2027-03-01"
days: 1
jobs:
  - job: {id: hourly, image: a, schedule: 0 * * * *}
    duration: {fixed: 1m}
faults:
  - {type: clock_jump, at: "2027-03-01T05:30:00Z", for: 2h, by: 10m}
`)
	// The timers of 06:00 and 07:00 are early by the clock of the server, which is ahead.
	if j := r.Jobs[0]; j.Due != 23 || j.Started+j.Missed != 23 || j.Succeeded < 22 {
		t.Errorf("got %+v", j)
	}
}
