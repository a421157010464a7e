package scenario

import (
	"time"

	"github.com/sortie-dev/sortie/shared/domain/job"
)

// File is the document of a scenario.
type File struct {
	// Start is a time of RFC 3339 or a date in UTC. Days is the length of the play, 1 to 92.
	Start string `json:"start"`
	Days  int    `json:"days"`
	// Seed determines everything that is drawn; nil means 1.
	Seed *int `json:"seed,omitempty"`
	// StartTime is the time from the creation of a machine until its program runs; empty means
	// 3s.
	StartTime job.Duration `json:"startTime,omitempty"`
	Limits    Limits       `json:"limits,omitzero"`
	Jobs      []Job        `json:"jobs"`
	Faults    []Fault      `json:"faults,omitempty"`
	// Prices are the prices of machines by size; a size without one has the default price.
	Prices []Price `json:"prices,omitempty"`
}

// Limits are the limits of the pool of all jobs.
type Limits struct {
	// Machines is the number of machines at once; nil means the default of a server, 0 no limit.
	Machines *int `json:"machines,omitempty"`
	// StartsPerSecond is the pace of starts; nil means no limit. Burst is how many starts are
	// permitted at once after a pause; nil means 1.
	StartsPerSecond *float64 `json:"startsPerSecond,omitempty"`
	Burst           *int     `json:"burst,omitempty"`
}

// Job is a job of the scenario with what is drawn for its runs.
type Job struct {
	// File is the job file, relative to the scenario. Job is the definition itself. Exactly one
	// of both is present.
	File string          `json:"file,omitempty"`
	Job  *job.Definition `json:"job,omitempty"`
	// Duration is how long the program of an attempt runs.
	Duration Length `json:"duration"`
	// Fails are attempts whose program fails.
	Fails *Failure `json:"fails,omitempty"`
	// Lost is the share of attempts whose machine is lost; nil means none.
	Lost *float64 `json:"lost,omitempty"`
	// Arrivals are runs on request, such as 20/hour, at random times; empty means none.
	Arrivals string `json:"arrivals,omitempty"`
}

// Length is the distribution of durations: Fixed, or a logarithmic normal distribution with the
// median and the 95th percentile.
type Length struct {
	Fixed  job.Duration `json:"fixed,omitempty"`
	Median job.Duration `json:"median,omitempty"`
	P95    job.Duration `json:"p95,omitempty"`
}

// Failure is the share of attempts that end with an exit code.
type Failure struct {
	Share float64 `json:"share"`
	// Code is 1 to 125; nil means 1.
	Code *int `json:"code,omitempty"`
}

// Fault is a fault during a part of the play.
type Fault struct {
	Type FaultType `json:"type"`
	// At is when it begins, a time of RFC 3339; empty means the start. For is how long it takes;
	// empty means until the end.
	At  string       `json:"at,omitempty"`
	For job.Duration `json:"for,omitempty"`
	// Share is the share of lost callbacks. By is how far the clock jumps; it may be negative.
	Share *float64     `json:"share,omitempty"`
	By    job.Duration `json:"by,omitempty"`
}

// FaultType is a kind of fault.
type FaultType string

// The kinds of faults.
const (
	// Outage: the API of the machines does not answer. Running programs continue.
	Outage FaultType = "outage"
	// Throttling: the API of the machines refuses new machines with 429.
	Throttling FaultType = "throttling"
	// LostCallbacks: a share of the reports of programs does not arrive.
	LostCallbacks FaultType = "lost_callbacks"
	// ClockJump: the clock of the server differs from the time.
	ClockJump FaultType = "clock_jump"
	// StoppedServer: the server is killed, and starts again at the end.
	StoppedServer FaultType = "stopped_server"
)

var faultTypes = []FaultType{Outage, Throttling, LostCallbacks, ClockJump, StoppedServer}

// Price is the price of a machine of a size.
type Price struct {
	CPUs     int `json:"cpus"`
	MemoryMB int `json:"memoryMB"`
	// PerSecond is in USD.
	PerSecond float64 `json:"perSecond"`
}

// The default price in USD of a CPU and of a gigabyte of memory for one second. It is a stated
// assumption and no offer of a provider.
const (
	cpuSecond      = 0.0000005
	gigabyteSecond = 0.000002
)

// priceOf returns the price in USD of a machine for one second.
func (f File) priceOf(cpus, memoryMB int) float64 {
	for _, p := range f.Prices {
		if p.CPUs == cpus && p.MemoryMB == memoryMB {
			return p.PerSecond
		}
	}
	return float64(cpus)*cpuSecond + float64(memoryMB)/1024*gigabyteSecond
}

// Scenario is a scenario that can be played.
type Scenario struct {
	// Name is the name of its file, with the settings that With has changed.
	Name string
	File File

	lines  job.Document
	start  time.Time
	jobs   []plannedJob
	faults []span
}

// plannedJob is a job with its settings in their final form.
type plannedJob struct {
	definition job.Definition
	setting    Job
	// perHour is the rate of arrivals.
	perHour float64
}

// span is a fault with its times: from <= t < to.
type span struct {
	Fault
	from, to time.Time
}

// End returns the end of the play.
func (s Scenario) End() time.Time { return s.start.Add(time.Duration(s.File.Days) * 24 * time.Hour) }

// Start returns the start of the play.
func (s Scenario) Start() time.Time { return s.start }

// Seed returns the seed.
func (s Scenario) Seed() uint64 {
	if s.File.Seed == nil {
		return 1
	}
	return uint64(*s.File.Seed) //nolint:gosec // checked: not negative
}

// WithSeed returns the scenario with another seed.
func (s Scenario) WithSeed(seed uint64) Scenario {
	s.File.Seed = new(int(seed)) //nolint:gosec // the bits count
	return s
}
