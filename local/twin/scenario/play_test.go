package scenario_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/twin/scenario"
	"github.com/sortie-dev/sortie/shared/domain/job"
)

func noFiles(string) (job.Definition, error) { return job.Definition{}, errors.New("no such file") }

func read(t *testing.T, text string) scenario.Scenario {
	t.Helper()
	s, err := scenario.Read("scenario.yaml", []byte(text), noFiles)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func play(t *testing.T, text string, settings ...string) scenario.Result {
	t.Helper()
	s, err := read(t, text).With(settings)
	if err != nil {
		t.Fatal(err)
	}
	r, err := scenario.Play(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSampleRunsAsItIsAndASeedRepeatsIt(t *testing.T) {
	t.Parallel()
	var texts [2]string
	for i := range texts {
		r := play(t, scenario.Sample, "days=3")
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
		if wait := r.Jobs[2].Waits; wait.Median < 3 || wait.Median > 4 {
			t.Errorf("got waits %+v of machines that start in 3 s", wait)
		}
		report := r.Jobs[0]
		if report.Due != 3 || report.Started != 3 || report.Missed != 0 || r.Jobs[2].Arrivals < 200 {
			t.Errorf("got %+v", r.Jobs)
		}
	}
	if texts[0] != texts[1] {
		t.Errorf("got two answers of a seed:\n%s\n%s", texts[0], texts[1])
	}
	other, err := scenario.Play(t.Context(), mustWith(t, "days=3").WithSeed(2), nil)
	if err != nil || other.Jobs[2].Arrivals == 0 {
		t.Fatal(other, err)
	}
	if text, _ := json.Marshal(other); strings.Replace(string(text), `"seed":2`, `"seed":1`, 1) == texts[0] {
		t.Error("seed 2 draws the same as seed 1")
	}
}

func mustWith(t *testing.T, settings ...string) scenario.Scenario {
	t.Helper()
	s, err := read(t, scenario.Sample).With(settings)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// nightly is a job at 02:30 in Berlin, where 28 March 2027 has no such time.
const nightly = `
start: "2027-03-25"
days: 6
startTime: 0s
jobs:
  - job: {id: nightly, image: report, schedule: 30 2 * * *, timeZone: Europe/Berlin}
    duration: {fixed: 10m}
`

func TestChangeOfTheClocks(t *testing.T) {
	t.Parallel()
	r := play(t, nightly)
	// A time that a change of the clocks skips fires right after it; see the README of jobs.
	if j := r.Jobs[0]; j.Due != 6 || j.Started != 6 || j.Succeeded != 6 || j.Late.Longest > 5 {
		t.Errorf("got %+v", j)
	}
	if hours := r.Whole.MachineHours; hours < 1 || hours > 1.01 {
		t.Errorf("got %v machine hours of 6 runs of 10 minutes", hours)
	}
}

// twoJobs are two jobs of an hour at the same time.
const twoJobs = `
start: "2027-03-01"
days: 2
startTime: 0s
limits: {machines: 1}
jobs:
  - job: {id: first, image: a, schedule: 0 6 * * *, constraints: {maxAllowedRunTime: 2h}}
    duration: {fixed: 1h}
  - job: {id: second, image: b, schedule: 0 6 * * *, constraints: {maxAllowedRunTime: 2h}}
    duration: {fixed: 1h}
`

func TestSecondOfTwoJobsWaitsForTheMachine(t *testing.T) {
	t.Parallel()
	r := play(t, twoJobs)
	waits := [2]float64{min(r.Jobs[0].Waits.Longest, r.Jobs[1].Waits.Longest), max(r.Jobs[0].Waits.Longest, r.Jobs[1].Waits.Longest)}
	if waits[0] > 5 || waits[1] < 3600 || waits[1] > 3630 || r.Whole.MostMachines != 1 || r.Whole.MostQueued != 1 {
		t.Errorf("got waits %v, %+v", waits, r.Whole)
	}
	if r := play(t, twoJobs, "limits.machines=2"); r.Whole.Waits.Longest > 5 || r.Whole.MostMachines != 2 || r.Whole.MostQueued != 0 {
		t.Errorf("got %+v with two machines", r.Whole)
	}
}

func TestOutageAtTheTimeOfAFiring(t *testing.T) {
	t.Parallel()
	r := play(t, nightly+`
faults:
  - {type: outage, at: "2027-03-26T01:29:00Z", for: 10m}
`)
	// The firing is on time; its machine is created once the API answers again.
	if j := r.Jobs[0]; j.Started != j.Due || j.Succeeded != j.Due || j.Late.Longest < 540 || j.Late.Longest > 660 || j.Late.Median > 5 {
		t.Errorf("got %+v", j)
	}
}

func TestServerThatIsStopped(t *testing.T) {
	t.Parallel()
	r := play(t, nightly+`
faults:
  - {type: stopped_server, at: "2027-03-26T01:00:00Z", for: 3h}
`)
	if j := r.Jobs[0]; j.Started+j.Missed != j.Due || j.Late.Longest < 2*3600 && j.Missed != 1 {
		t.Errorf("got %+v", j)
	}
}

func TestLostMachinesAndFailuresAreRetried(t *testing.T) {
	t.Parallel()
	r := play(t, `
start: "2027-03-01"
days: 3
jobs:
  - job: {id: flaky, image: a, schedule: "*/30 * * * *", retryConfig: {maxRetries: 1, initialDelay: 10s}}
    duration: {fixed: 2m}
    fails: {share: 0.3, code: 75}
    lost: 0.2
faults:
  - {type: lost_callbacks, share: 0.2}
  - {type: throttling, at: "2027-03-02T12:00:00Z", for: 1h}
  - {type: clock_jump, at: "2027-03-01T12:00:00Z", for: 1h, by: 5m}
`)
	j := r.Jobs[0]
	if j.Retries < 20 || j.Failures["PROGRAM_EXIT 75"] < 10 || j.Failures["WORKER_LOST"] < 10 || j.Failed == 0 || j.Succeeded < j.Failed {
		t.Errorf("got %+v", j)
	}
	if j.Started+j.Missed+j.Open < j.Due-1 {
		t.Errorf("got %d started and %d missed of %d", j.Started, j.Missed, j.Due)
	}
}

func TestLimitOfTwentyInsteadOfTen(t *testing.T) {
	t.Parallel()
	const busy = `
start: "2027-03-01"
days: 1
limits: {machines: 10}
jobs:
  - job: {id: import, image: a, constraints: {maxAllowedRunTime: 12h}}
    duration: {median: 2h, p95: 4h}
    arrivals: 6/hour
`
	ten, twenty := play(t, busy), play(t, busy, "limits.machines=20")
	if ten.Jobs[0].Arrivals != twenty.Jobs[0].Arrivals || ten.Whole.MostMachines != 10 || twenty.Whole.MostMachines <= 10 {
		t.Errorf("got %+v and %+v", ten.Whole, twenty.Whole)
	}
	if ten.Whole.Waits.P95 <= twenty.Whole.Waits.P95 {
		t.Errorf("got waits %+v with 10 and %+v with 20", ten.Whole.Waits, twenty.Whole.Waits)
	}
}

func BenchmarkMonthOfThreeThousandRuns(b *testing.B) {
	s, err := scenario.Read("scenario.yaml", []byte(scenario.Sample), noFiles)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		r, err := scenario.Play(b.Context(), s, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(r.Whole.Runs), "runs/op")
	}
}
