package machines

import (
	"context"
	"time"

	"github.com/sortie-dev/sortie/local/proof/simulation/harness"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// ways has the probabilities of faults on platforms other than Fly.
type ways struct {
	// TooMany is the probability that the API server or a registry refuses a call. quota is the
	// probability that a namespace or an engine has no capacity left.
	TooMany, quota float64
	// unscheduled is the probability that no node fits a pod, at first or permanently. badImage
	// is the probability that the image cannot be pulled. pending is the probability of a long
	// wait.
	unscheduled, badImage, pending float64
	// Evicted pods are ended by the cluster. lostNodes stop with their workers. deleted Jobs
	// are deleted from outside.
	Evicted, lostNodes, deleted float64
	// startRefused is the probability that the engine creates a container but cannot start it.
	startRefused float64
	// lag limits the age of a cluster's reads. cuts is the number of times that its watch is
	// cut for up to longestCut.
	lag  time.Duration
	cuts int
	// Outages is the number of outages of the API server and of the engine.
	Outages int
}

// longestCut limits the time for which a watch is cut.
const longestCut = time.Minute

// DrawWays draws the probabilities. About half of them are 0.
func (w *Machines) DrawWays() ways {
	some := func(most float64) float64 {
		if w.Random.IntN(2) == 0 {
			return 0
		}
		return w.Random.Float64() * most
	}
	p := ways{
		TooMany: some(0.6), quota: some(0.6), unscheduled: some(0.5), badImage: some(0.4), pending: some(0.5),
		Evicted: some(0.2), lostNodes: some(0.2), deleted: some(0.2), startRefused: some(0.5),
		cuts: w.Random.IntN(2) * w.Random.IntN(6), Outages: w.Random.IntN(2) * w.Random.IntN(4),
	}
	if w.Chance(0.5) {
		p.lag = w.UpTo(5 * time.Second)
	}
	return p
}

// seenStatus is the status of a machine since a time.
type seenStatus struct {
	At     time.Time
	Status port.MachineStatus
}

// cluster is a simulated Kubernetes cluster with its adapter. A machine is a Job with its pod.
// Lists show the state of a watch; Inspect reads from the API server.
type cluster struct {
	*provider
	// jobs are all machines, in the order of creation.
	jobs []*Machine
	// cutAt and cutUntil are the begin and the end of the last cut of the watch.
	cutAt, cutUntil time.Time
}

// newCluster returns a cluster and schedules the cuts of its watch.
func newCluster(w *Machines, runner string) *cluster {
	c := &cluster{provider: newProvider(w, runner, harness.ClusterOutage)}
	c.lagging = true
	for range w.Ways.cuts {
		w.Time.Push(w.UpTo(2*w.Longest), true, func() {
			c.cutAt, c.cutUntil = w.Time.Now, w.Time.Now.Add(w.UpTo(longestCut))
			w.Note("the watch of the cluster is cut until %s", c.cutUntil.Sub(harness.Start))
		})
	}
	return c
}

// cached returns the machine as the watch shows it. It returns false if the watch does not show
// it yet.
func (c *cluster) cached(m *Machine) (s port.MachineStatus, ok bool) {
	at := c.Time.Now.Add(-c.Ways.lag)
	if c.Time.Now.Before(c.cutUntil) && c.cutAt.Before(at) {
		at = c.cutAt
	}
	for _, one := range m.seen {
		if one.At.After(at) {
			break
		}
		s, ok = one.Status, true
	}
	return s, ok
}

// named returns the Job with the name, even if its pod has ended by itself.
func (c *cluster) named(name string) *Machine {
	for _, m := range c.jobs {
		if m.Spec.Name == name && !m.Erased && (m.Alive() || !m.Destroyed) {
			return m
		}
	}
	return nil
}

// Launch implements port.Runner. It creates the Job, or adopts the one with the name, and
// observes it for a while. It destroys a machine that does not start.
func (c *cluster) Launch(ctx context.Context, spec port.LaunchSpec) (port.MachineStatus, error) {
	w := c.Machines
	w.Watch.DuringCall(spec.Env["TASK_ID"])
	if err := c.maybeLost(ctx); err != nil {
		return port.MachineStatus{}, err
	}
	if w.Down(harness.Throttling) || w.Chance(w.Ways.TooMany) {
		return port.MachineStatus{}, c.refuse(spec, fault.Throttled, "too many requests to the cluster")
	}
	m := c.named(spec.Name)
	switch {
	case m != nil && m.Destroyed:
		return port.MachineStatus{}, fault.New(fault.Unavailable, "the machine that had its name still ends")
	case m == nil && w.Chance(w.Ways.quota):
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
	w.Note("%s is withdrawn", m.ID)
	if err := c.maybeLost(ctx); err != nil {
		return port.MachineStatus{}, fault.Wrap(err, fault.Unavailable, "the machine was not destroyed")
	}
	c.destroy(m)
	facts := w.Attempt(spec.Env["TASK_ID"], spec.Owner.Attempt)
	facts.Machines, facts.LongStart, facts.Withdrawn = facts.Machines-1, true, true
	return port.MachineStatus{}, status.StartFault
}

// schedule draws whether and when the pod of a Job starts.
func (c *cluster) schedule(m *Machine) {
	w := c.Machines
	if w.Injects("program that never started", w.Plan.NeverStart) {
		w.Note("%s gets no pod", m.ID)
		return
	}
	w.addWorkers(m)
	pause := w.UpTo(5 * time.Second)
	if w.Chance(w.Ways.pending) {
		pause = w.UpTo(w.Longest / 4)
	}
	switch {
	case w.Chance(w.Ways.unscheduled):
		w.Time.After(w.UpTo(10*time.Second), func() { c.hinder(m, fault.Capacity, "0/3 nodes are available", 0.3) })
	case w.Chance(w.Ways.badImage):
		w.Time.After(w.UpTo(10*time.Second), func() { c.hinder(m, fault.Image, "ImagePullBackOff", 0.1) })
	default:
		w.Time.After(pause, func() { c.begin(m) })
	}
}

// hinder records why a pod does not start. With the probability later, the pod starts later.
func (c *cluster) hinder(m *Machine, code fault.Code, message string, later float64) {
	w := c.Machines
	facts := w.Attempt(m.Spec.Env["TASK_ID"], m.Spec.Owner.Attempt)
	facts.Refusals = append(facts.Refusals, Refusal{w.Time.Now, c.Runner, code, message})
	m.startFault = fault.New(code, "%s", message)
	w.Note("%s does not start: %s", m.ID, message)
	m.change()
	if w.Chance(later) {
		w.Time.After(w.UpTo(w.Longest/4), func() {
			m.startFault = nil
			c.begin(m)
		})
	}
}

// begin starts the pod and draws the later faults of the cluster.
func (c *cluster) begin(m *Machine) {
	w := c.Machines
	if m.Destroyed || m.stopping {
		return // a deleted pod is not scheduled
	}
	m.start()
	switch {
	case w.Chance(w.Ways.Evicted):
		w.Time.After(w.UpTo(w.Longest/2), func() { c.interrupt(m, "evicted", 0) })
	case w.Chance(w.Ways.lostNodes):
		w.Time.After(w.UpTo(w.Longest/2), func() { c.loseNode(m) })
	case w.Chance(w.Ways.deleted):
		w.Time.After(w.UpTo(w.Longest/2), func() {
			if c.interrupt(m, "deleted with its Job", w.UpTo(5*time.Second)) {
				m.Erased = true
			}
		})
	}
}

// interrupt makes the cluster end a running pod. It returns false if the pod has ended.
func (c *cluster) interrupt(m *Machine, how string, grace time.Duration) bool {
	if !m.Alive() {
		return false
	}
	c.Note("%s is %s", m.ID, how)
	c.Attempt(m.Spec.Env["TASK_ID"], m.Spec.Owner.Attempt).Strangers++
	c.stop(m, grace)
	return true
}

// loseNode stops the workers of a machine for a while, and then evicts its pod.
func (c *cluster) loseNode(m *Machine) {
	w := c.Machines
	if !m.Alive() {
		return
	}
	w.Note("the node of %s is lost", m.ID)
	w.Attempt(m.Spec.Env["TASK_ID"], m.Spec.Owner.Attempt).Strangers++
	for _, p := range m.Workers {
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
