package simulation

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
	lostCalls, lostCommits, crashes, interrupts           float64
	throttles, noCapacity, invisible, stuck               float64
	neverStart, immediate, lost, late, lostExits, cancels float64
	// slowCommits overlap with other commits. delayedCalls are function calls that fail for the
	// caller and run later. unforeseen are function errors without a code. aborts stop an
	// execution from outside.
	slowCommits, delayedCalls, unforeseen, aborts float64
	// workerContract is the share of workers that use the worker contract; the others only call
	// back. clones are two processes with one envelope. freezes stop a process for a while.
	// strangers is the probability that a machine is stopped from outside of Sortie.
	workerContract, clones, freezes, ignoreSignals, strangers float64
	// serviceFaults is the probability that a service of AWS throttles a call or answers
	// partially.
	serviceFaults float64
	// lostWakeUps is the probability that a wake-up of a job is lost, arrives twice, or arrives
	// after it was replaced.
	lostWakeUps float64
	// outages is the number of outages.
	outages int
	// skew limits the offset of a host's clock.
	skew time.Duration
	// retries is the share of ended runs that a client retries.
	retries float64
}

// reliable reports whether Sortie itself has no faults, so that all waits must be short.
func (p plan) reliable() bool {
	return p.lostCalls+p.lostCommits+p.crashes+p.delayedCalls+p.unforeseen+p.aborts+p.slowCommits+p.serviceFaults+float64(p.outages) == 0
}

// drawPlan draws the probabilities of faults. About half of them are zero. In a third of the
// worlds Sortie itself has no faults.
func (w *base) drawPlan() plan {
	some := func(most float64) float64 {
		if w.random.IntN(2) == 0 {
			return 0
		}
		return w.random.Float64() * most
	}
	p := plan{
		throttles: some(0.5), noCapacity: some(0.2), invisible: some(0.5), stuck: some(0.2),
		neverStart: some(0.3), immediate: some(0.6), lost: some(0.3), late: some(0.2), lostExits: some(0.5), cancels: some(0.4),
		workerContract: []float64{0, 0.5, 1, 1}[w.random.IntN(4)], clones: some(0.3), freezes: some(0.5), ignoreSignals: some(0.5),
		strangers: some(0.2), retries: some(0.2), lostWakeUps: some(0.3), interrupts: some(0.02) * float64(w.random.IntN(2)),
	}
	if w.contended() || w.admitting() && w.seed%4 != 3 {
		return plan{workerContract: p.workerContract, immediate: p.immediate, late: p.late, lostExits: p.lostExits, ignoreSignals: p.ignoreSignals}
	}
	if w.chance(0.1) {
		p.neverStart = 1
	}
	if w.chance(0.3) {
		p.skew = w.upTo(maxSkew)
	}
	if w.chance(1. / 3) {
		return p
	}
	p.lostCalls, p.lostCommits, p.crashes = some(0.1), some(0.1), some(0.02)
	p.serviceFaults = some(0.1)
	p.slowCommits, p.delayedCalls = some(0.5), some(0.1)
	p.unforeseen, p.aborts = some(0.05)*float64(w.random.IntN(2)), some(0.3)*float64(w.random.IntN(2))
	p.outages = w.random.IntN(2) * w.random.IntN(5)
	return p
}

// maxSkew limits the offset of a host's clock. Two hosts then differ by less than the minute
// that tokens permit.
const maxSkew = 25 * time.Second

// between draws whole seconds from a range, with equal probability for each order of magnitude.
func (w *base) between(least, most time.Duration) time.Duration {
	from, to := math.Log(least.Seconds()), math.Log(most.Seconds())
	drawn := time.Duration(math.Exp(from+w.random.Float64()*(to-from))) * time.Second
	return max(drawn, least)
}

// drawPolicy draws a policy from the whole range of each setting; longest limits
// the durations.
func (w *base) drawPolicy(longest time.Duration) spec.Policy {
	p := spec.Policy{
		StartTimeout: w.between(5*time.Second, min(longest, limit.TokenTTL)), TimeLimit: w.between(10*time.Second, longest),
		CancelGrace: w.between(time.Second, min(longest, limit.CancelGrace)), QueueTimeout: w.between(time.Second, longest),
		OutputRetention: 30 * 24 * time.Hour, RecordRetention: 60 * 24 * time.Hour,
		Retry: spec.Retry{
			MaxAttempts: 1 + w.random.IntN(4), MaxFurtherStarts: w.random.IntN(4), InitialDelay: w.between(time.Second, longest/16),
			Multiplier: 1 + 9*w.random.Float64()*float64(w.random.IntN(2)), Jitter: w.random.Float64(),
		},
	}
	p.Retry.MaxDelay = w.between(p.Retry.InitialDelay, max(longest/8, p.Retry.InitialDelay))
	p.HeartbeatTimeout = w.between(2*time.Second, min(p.TimeLimit-time.Second, time.Hour))
	p.HeartbeatInterval = w.between(time.Second, p.HeartbeatTimeout/2)
	if w.chance(0.3) {
		categories := fault.Categories()
		for _, c := range categories {
			if c != fault.CategoryCancel && w.chance(0.5) {
				p.Retry.Categories = append(p.Retry.Categories, c)
			}
		}
	}
	return p
}

// requested returns the policy in the form of a request.
func requested(p spec.Policy) *contract.Policy {
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

// drawConfig draws the settings of the deployment.
func (w *base) drawConfig() runs.Config {
	w.longest = []time.Duration{2 * time.Minute, 10 * time.Minute, time.Hour, time.Hour, 6 * time.Hour}[w.random.IntN(5)]
	if w.onAWS() { // a sweep makes many DynamoDB calls
		w.longest = min(w.longest, time.Hour)
	}
	if w.serves() { // servers run permanently
		w.longest = min(w.longest, 10*time.Minute)
	}
	config := runs.Config{
		MaxEvents: max(300<<w.random.IntN(7), w.outageEvents()), SweepInterval: w.between(max(time.Second, w.longest/720), time.Minute),
		Policy: w.drawPolicy(w.longest), Pool: "default", MaxMachines: w.random.IntN(5), Image: "worker", CPUs: 1, MemoryMB: 256,
		TokenTTL: w.between(time.Minute, limit.TokenTTL), PublicURL: "http://sortie", SourceURL: "http://source", DownloadRetention: time.Hour, DigestRead: 1 << 20,
		LaunchWait: w.between(time.Second, 30*time.Second), ExitWait: w.between(time.Second, 10*time.Second), DestroyWait: w.between(time.Second, 30*time.Second),
	}
	if w.onAWS() {
		config.SweepInterval = max(config.SweepInterval, w.longest/60, 10*time.Second)
	}
	w.requests = 1 + w.random.IntN(6)
	switch {
	case w.onAWS():
	case w.chance(0.03):
		w.requests = 20 + w.random.IntN(60)
	case w.chance(0.005):
		w.requests = 100 + w.random.IntN(200)
	}
	if w.requests > 10 {
		config.MaxMachines *= 10
	}
	return config
}

// onAWS reports whether the world uses the fakes of AWS.
func (w *base) onAWS() bool { return w.seed%2 == 0 }
