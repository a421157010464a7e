package harness

import (
	"math"
	"time"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// plan has the probabilities of faults, each from 0 to 1.
type plan struct {
	LostCalls, LostCommits, Crashes, Interrupts           float64
	Throttles, NoCapacity, Invisible, Stuck               float64
	NeverStart, Immediate, Lost, Late, LostExits, Cancels float64
	// SlowCommits overlap with other commits. delayedCalls are function calls that fail for the
	// caller and run later. unforeseen are function errors without a code. aborts stop an
	// execution from outside.
	SlowCommits, delayedCalls, Unforeseen, Aborts float64
	// WorkerContract is the share of workers that use the worker contract; the others only call
	// back. clones are two processes with one envelope. freezes stop a process for a while.
	// strangers is the probability that a machine is stopped from outside of Sortie.
	WorkerContract, Clones, Freezes, IgnoreSignals, Strangers float64
	// ServiceFaults is the probability that a service of AWS throttles a call or answers
	// partially.
	ServiceFaults float64
	// LostWakeUps is the probability that a wake-up of a job is lost, arrives twice, or arrives
	// after it was replaced.
	LostWakeUps float64
	// Outages is the number of outages.
	Outages int
	// Skew limits the offset of a host's clock.
	Skew time.Duration
	// Retries is the share of ended runs that a client retries.
	Retries float64
}

// Reliable reports whether Sortie itself has no faults, so that all waits must be short.
func (p plan) Reliable() bool {
	return p.LostCalls+p.LostCommits+p.Crashes+p.delayedCalls+p.Unforeseen+p.Aborts+p.SlowCommits+p.ServiceFaults+float64(p.Outages) == 0
}

// DrawPlan draws the probabilities of faults. About half of them are zero. In a third of the
// worlds Sortie itself has no faults.
func (w *Base) DrawPlan() plan {
	some := func(most float64) float64 {
		if w.Random.IntN(2) == 0 {
			return 0
		}
		return w.Random.Float64() * most
	}
	p := plan{
		Throttles: some(0.5), NoCapacity: some(0.2), Invisible: some(0.5), Stuck: some(0.2),
		NeverStart: some(0.3), Immediate: some(0.6), Lost: some(0.3), Late: some(0.2), LostExits: some(0.5), Cancels: some(0.4),
		WorkerContract: []float64{0, 0.5, 1, 1}[w.Random.IntN(4)], Clones: some(0.3), Freezes: some(0.5), IgnoreSignals: some(0.5),
		Strangers: some(0.2), Retries: some(0.2), LostWakeUps: some(0.3), Interrupts: some(0.02) * float64(w.Random.IntN(2)),
	}
	if w.Contended() || w.Admitting() && w.Seed%4 != 3 {
		return plan{WorkerContract: p.WorkerContract, Immediate: p.Immediate, Late: p.Late, LostExits: p.LostExits, IgnoreSignals: p.IgnoreSignals}
	}
	if w.Chance(0.1) {
		p.NeverStart = 1
	}
	if w.Chance(0.3) {
		p.Skew = w.UpTo(maxSkew)
	}
	if w.Chance(1. / 3) {
		return p
	}
	p.LostCalls, p.LostCommits, p.Crashes = some(0.1), some(0.1), some(0.02)
	p.ServiceFaults = some(0.1)
	p.SlowCommits, p.delayedCalls = some(0.5), some(0.1)
	p.Unforeseen, p.Aborts = some(0.05)*float64(w.Random.IntN(2)), some(0.3)*float64(w.Random.IntN(2))
	p.Outages = w.Random.IntN(2) * w.Random.IntN(5)
	return p
}

// maxSkew limits the offset of a host's clock. Two hosts then differ by less than the minute
// that tokens permit.
const maxSkew = 25 * time.Second

// Between draws whole seconds from a range, with equal probability for each order of magnitude.
func (w *Base) Between(least, most time.Duration) time.Duration {
	from, to := math.Log(least.Seconds()), math.Log(most.Seconds())
	drawn := time.Duration(math.Exp(from+w.Random.Float64()*(to-from))) * time.Second
	return max(drawn, least)
}

// DrawPolicy draws a policy from the whole range of each setting; longest limits
// the durations.
func (w *Base) DrawPolicy(longest time.Duration) spec.Policy {
	p := spec.Policy{
		StartTimeout: w.Between(5*time.Second, min(longest, limit.TokenTTL)), TimeLimit: w.Between(10*time.Second, longest),
		CancelGrace: w.Between(time.Second, min(longest, limit.CancelGrace)), QueueTimeout: w.Between(time.Second, longest),
		OutputRetention: 30 * 24 * time.Hour, RecordRetention: 60 * 24 * time.Hour,
		Retry: spec.Retry{
			MaxAttempts: 1 + w.Random.IntN(4), MaxFurtherStarts: w.Random.IntN(4), InitialDelay: w.Between(time.Second, longest/16),
			Multiplier: 1 + 9*w.Random.Float64()*float64(w.Random.IntN(2)), Jitter: w.Random.Float64(),
		},
	}
	p.Retry.MaxDelay = w.Between(p.Retry.InitialDelay, max(longest/8, p.Retry.InitialDelay))
	p.HeartbeatTimeout = w.Between(2*time.Second, min(p.TimeLimit-time.Second, time.Hour))
	p.HeartbeatInterval = w.Between(time.Second, p.HeartbeatTimeout/2)
	if w.Chance(0.3) {
		categories := fault.Categories()
		for _, c := range categories {
			if c != fault.CategoryCancel && w.Chance(0.5) {
				p.Retry.Categories = append(p.Retry.Categories, c)
			}
		}
	}
	return p
}

// Requested returns the policy in the form of a request.
func Requested(p spec.Policy) *contract.Policy {
	seconds := func(d time.Duration) *int { return new(int(d / time.Second)) }
	asked := &contract.Policy{
		TimeLimitSeconds: seconds(p.TimeLimit), StartTimeoutSeconds: seconds(p.StartTimeout), CancelGraceSeconds: seconds(p.CancelGrace),
		HeartbeatIntervalSeconds: seconds(p.HeartbeatInterval), HeartbeatTimeoutSeconds: seconds(p.HeartbeatTimeout),
		Retry: &contract.RetryPolicy{
			MaxAttempts: &p.Retry.MaxAttempts, InitialDelaySeconds: seconds(p.Retry.InitialDelay), MaxDelaySeconds: seconds(p.Retry.MaxDelay),
			Multiplier: &p.Retry.Multiplier, Jitter: &p.Retry.Jitter,
		},
	}
	for _, c := range p.Retry.Categories {
		asked.Retry.Categories = append(asked.Retry.Categories, string(c))
	}
	return asked
}

// DrawConfig draws the settings of the deployment.
func (w *Base) DrawConfig() runs.Config {
	w.Longest = []time.Duration{2 * time.Minute, 10 * time.Minute, time.Hour, time.Hour, 6 * time.Hour}[w.Random.IntN(5)]
	if w.OnAWS() { // a sweep makes many DynamoDB calls
		w.Longest = min(w.Longest, time.Hour)
	}
	if w.Dated() { // the runs are short, and the world takes days
		w.Longest = min(w.Longest, 10*time.Minute)
	}
	if w.Serves() { // servers run permanently
		w.Longest = min(w.Longest, 10*time.Minute)
	}
	config := runs.Config{
		MaxEvents: max(300<<w.Random.IntN(7), w.outageEvents()), SweepInterval: w.Between(max(time.Second, w.Longest/720), time.Minute),
		Policy: w.DrawPolicy(w.Longest), Pool: "default", MaxMachines: w.Random.IntN(5), Image: "worker", CPUs: 1, MemoryMB: 256,
		TokenTTL: w.Between(time.Minute, limit.TokenTTL), PublicURL: "http://sortie", SourceURL: "http://source", DownloadRetention: time.Hour, DigestRead: 1 << 20,
		LaunchWait: w.Between(time.Second, 30*time.Second), ExitWait: w.Between(time.Second, 10*time.Second), DestroyWait: w.Between(time.Second, 30*time.Second),
	}
	if w.OnAWS() {
		config.SweepInterval = max(config.SweepInterval, w.Longest/60, 10*time.Second)
	}
	w.Requests = 1 + w.Random.IntN(6)
	switch {
	case w.OnAWS():
	case w.Chance(0.03):
		w.Requests = 20 + w.Random.IntN(60)
	case w.Chance(0.005):
		w.Requests = 100 + w.Random.IntN(200)
	}
	if w.Requests > 10 {
		config.MaxMachines *= 10
	}
	return config
}

// OnAWS reports whether the world uses the fakes of AWS.
func (w *Base) OnAWS() bool { return w.Seed%2 == 0 }
