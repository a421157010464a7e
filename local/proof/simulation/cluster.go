package simulation

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// ways has the probabilities of faults on platforms other than Fly.
type ways struct {
	// tooMany is the probability that the API server or a registry refuses a call. quota is the
	// probability that a namespace or an engine has no capacity left.
	tooMany, quota float64
	// unscheduled is the probability that no node fits a pod, at first or permanently. badImage
	// is the probability that the image cannot be pulled. pending is the probability of a long
	// wait.
	unscheduled, badImage, pending float64
	// evicted pods are ended by the cluster. lostNodes stop with their workers. deleted Jobs
	// are deleted from outside.
	evicted, lostNodes, deleted float64
	// startRefused is the probability that the engine creates a container but cannot start it.
	startRefused float64
	// lag limits the age of a cluster's reads. cuts is the number of times that its watch is
	// cut for up to longestCut.
	lag  time.Duration
	cuts int
	// outages is the number of outages of the API server and of the engine.
	outages int
}

// longestCut limits the time for which a watch is cut.
const longestCut = time.Minute

// drawWays draws the probabilities. About half of them are 0.
func (w *machines) drawWays() ways {
	some := func(most float64) float64 {
		if w.Random.IntN(2) == 0 {
			return 0
		}
		return w.Random.Float64() * most
	}
	p := ways{
		tooMany: some(0.6), quota: some(0.6), unscheduled: some(0.5), badImage: some(0.4), pending: some(0.5),
		evicted: some(0.2), lostNodes: some(0.2), deleted: some(0.2), startRefused: some(0.5),
		cuts: w.Random.IntN(2) * w.Random.IntN(6), outages: w.Random.IntN(2) * w.Random.IntN(4),
	}
	if w.Chance(0.5) {
		p.lag = w.UpTo(5 * time.Second)
	}
	return p
}

// seenStatus is the status of a machine since a time.
type seenStatus struct {
	at     time.Time
	status port.MachineStatus
}

// cluster is a simulated Kubernetes cluster with its adapter. A machine is a Job with its pod.
// Lists show the state of a watch; Inspect reads from the API server.
type cluster struct {
	*provider
	// jobs are all machines, in the order of creation.
	jobs []*machine
	// cutAt and cutUntil are the begin and the end of the last cut of the watch.
	cutAt, cutUntil time.Time
}

// newCluster returns a cluster and schedules the cuts of its watch.
func newCluster(w *machines, runner string) *cluster {
	c := &cluster{provider: newProvider(w, runner, harness.ClusterOutage)}
	c.lagging = true
	for range w.ways.cuts {
		w.Time.Push(w.UpTo(2*w.Longest), true, func() {
			c.cutAt, c.cutUntil = w.Time.Now, w.Time.Now.Add(w.UpTo(longestCut))
			w.Note("the watch of the cluster is cut until %s", c.cutUntil.Sub(harness.Start))
		})
	}
	return c
}

// cached returns the machine as the watch shows it. It returns false if the watch does not show
// it yet.
func (c *cluster) cached(m *machine) (s port.MachineStatus, ok bool) {
	at := c.Time.Now.Add(-c.ways.lag)
	if c.Time.Now.Before(c.cutUntil) && c.cutAt.Before(at) {
		at = c.cutAt
	}
	for _, one := range m.seen {
		if one.at.After(at) {
			break
		}
		s, ok = one.status, true
	}
	return s, ok
}

// named returns the Job with the name, even if its pod has ended by itself.
func (c *cluster) named(name string) *machine {
	for _, m := range c.jobs {
		if m.spec.Name == name && !m.erased && (m.alive() || !m.destroyed) {
			return m
		}
	}
	return nil
}

// Launch implements port.Runner. It creates the Job, or adopts the one with the name, and
// observes it for a while. It destroys a machine that does not start.
func (c *cluster) Launch(ctx context.Context, spec port.LaunchSpec) (port.MachineStatus, error) {
	w := c.machines
	w.Watch.DuringCall(spec.Env["TASK_ID"])
	if err := c.maybeLost(ctx); err != nil {
		return port.MachineStatus{}, err
	}
	if w.Down(harness.Throttling) || w.Chance(w.ways.tooMany) {
		return port.MachineStatus{}, c.refuse(spec, fault.Throttled, "too many requests to the cluster")
	}
	m := c.named(spec.Name)
	switch {
	case m != nil && m.destroyed:
		return port.MachineStatus{}, fault.New(fault.Unavailable, "the machine that had its name still ends")
	case m == nil && w.Chance(w.ways.quota):
		return port.MachineStatus{}, c.refuse(spec, fault.Capacity, "exceeded quota: pods=10")
	case m == nil:
		m = c.create(spec)
		c.jobs = append(c.jobs, m)
		c.schedule(m)
	}
	status, err := c.answer(m)
	if err != nil {
		return status, err
	}
	c.await(ctx, m, port.MachineRunning, w.UpTo(5*time.Second))
	if status = m.view(); status.StartFault == nil {
		return status, nil
	}
	w.Note("%s is withdrawn", m.id)
	if err := c.maybeLost(ctx); err != nil {
		return port.MachineStatus{}, fault.Wrap(err, fault.Unavailable, "the machine was not destroyed")
	}
	c.destroy(m)
	facts := w.attempt(spec.Env["TASK_ID"], spec.Owner.Attempt)
	facts.machines, facts.longStart, facts.withdrawn = facts.machines-1, true, true
	return port.MachineStatus{}, status.StartFault
}

// schedule draws whether and when the pod of a Job starts.
func (c *cluster) schedule(m *machine) {
	w := c.machines
	if w.Chance(w.Plan.NeverStart) {
		w.Note("%s gets no pod", m.id)
		return
	}
	w.addWorkers(m)
	pause := w.UpTo(5 * time.Second)
	if w.Chance(w.ways.pending) {
		pause = w.UpTo(w.Longest / 4)
	}
	switch {
	case w.Chance(w.ways.unscheduled):
		w.Time.After(w.UpTo(10*time.Second), func() { c.hinder(m, fault.Capacity, "0/3 nodes are available", 0.3) })
	case w.Chance(w.ways.badImage):
		w.Time.After(w.UpTo(10*time.Second), func() { c.hinder(m, fault.Image, "ImagePullBackOff", 0.1) })
	default:
		w.Time.After(pause, func() { c.begin(m) })
	}
}

// hinder records why a pod does not start. With the probability later, the pod starts later.
func (c *cluster) hinder(m *machine, code fault.Code, message string, later float64) {
	w := c.machines
	facts := w.attempt(m.spec.Env["TASK_ID"], m.spec.Owner.Attempt)
	facts.refusals = append(facts.refusals, refusal{w.Time.Now, c.runner, code, message})
	m.startFault = fault.New(code, "%s", message)
	w.Note("%s does not start: %s", m.id, message)
	m.change()
	if w.Chance(later) {
		w.Time.After(w.UpTo(w.Longest/4), func() {
			m.startFault = nil
			c.begin(m)
		})
	}
}

// begin starts the pod and draws the later faults of the cluster.
func (c *cluster) begin(m *machine) {
	w := c.machines
	if m.destroyed || m.stopping {
		return // a deleted pod is not scheduled
	}
	m.start()
	switch {
	case w.Chance(w.ways.evicted):
		w.Time.After(w.UpTo(w.Longest/2), func() { c.interrupt(m, "evicted", 0) })
	case w.Chance(w.ways.lostNodes):
		w.Time.After(w.UpTo(w.Longest/2), func() { c.loseNode(m) })
	case w.Chance(w.ways.deleted):
		w.Time.After(w.UpTo(w.Longest/2), func() {
			if c.interrupt(m, "deleted with its Job", w.UpTo(5*time.Second)) {
				m.erased = true
			}
		})
	}
}

// interrupt makes the cluster end a running pod. It returns false if the pod has ended.
func (c *cluster) interrupt(m *machine, how string, grace time.Duration) bool {
	if !m.alive() {
		return false
	}
	c.Note("%s is %s", m.id, how)
	c.attempt(m.spec.Env["TASK_ID"], m.spec.Owner.Attempt).strangers++
	c.stop(m, grace)
	return true
}

// loseNode stops the workers of a machine for a while, and then evicts its pod.
func (c *cluster) loseNode(m *machine) {
	w := c.machines
	if !m.alive() {
		return
	}
	w.Note("the node of %s is lost", m.id)
	w.attempt(m.spec.Env["TASK_ID"], m.spec.Owner.Attempt).strangers++
	for _, p := range m.workers {
		p.wasFrozen, p.frozenUntil = true, w.Time.Now.Add(w.UpTo(10*time.Minute))
	}
	w.Time.After(w.UpTo(5*time.Minute), func() { c.end(m, port.Exit{Code: 137, Signal: 9, Requested: true}) })
}

// List implements port.Runner with the state of the watch.
func (c *cluster) List(ctx context.Context, each func(port.MachineStatus) bool) error {
	if err := c.maybeLost(ctx); err != nil {
		return err
	}
	for _, m := range c.jobs {
		if s, ok := c.cached(m); ok && s.Phase != port.MachineGone && !each(s) {
			break
		}
	}
	return nil
}
