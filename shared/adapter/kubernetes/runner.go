package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// Runner implements port.Runner with Kubernetes Jobs. It is safe for concurrent use.
type Runner struct {
	cfg    Config
	parts  map[string]*part // by namespace
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

var (
	_ port.Runner      = (*Runner)(nil)
	_ port.MachineLogs = (*Runner)(nil)
)

// New returns a Runner that watches its namespaces, or polls. The caller must close it.
func New(cfg Config) (*Runner, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	r := &Runner{cfg: cfg, parts: map[string]*part{}}
	for _, namespace := range cfg.Namespaces {
		if r.parts[namespace], err = newPart(cfg, namespace); err != nil {
			return nil, fmt.Errorf("cannot watch namespace %s: %w", namespace, err)
		}
	}
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(context.Background())
	for _, p := range r.parts {
		r.ended.Go(func() { p.run(ctx, cfg) })
	}
	return r, nil
}

// Close ends the watches.
func (r *Runner) Close() {
	r.cancel()
	r.ended.Wait()
}

// find returns the part and the place of a machine. The part is nil if the machine cannot
// belong to this cluster.
func (r *Runner) find(m port.Machine) (*part, place) {
	at, ok := placeOf(r.cfg.Cluster, m)
	if !ok {
		return nil, place{}
	}
	return r.parts[at.namespace], at
}

// fetch reads the objects of a Job from the API server.
func (r *Runner) fetch(ctx context.Context, at place) (objects, error) {
	var o objects
	job, err := r.cfg.Client.Jobs(at.namespace).Get(ctx, at.name, metav1.GetOptions{})
	switch {
	case err == nil && job.UID == at.uid:
		o.job = job
	case err != nil && !apierrors.IsNotFound(err):
		return o, err
	}
	pods, err := r.cfg.Client.Pods(at.namespace).List(ctx, metav1.ListOptions{LabelSelector: labelJobUID + "=" + string(at.uid)})
	if err != nil {
		return o, err
	}
	for i := range pods.Items {
		o.pods = append(o.pods, &pods.Items[i])
		if p := r.parts[at.namespace]; r.cfg.Poll && p != nil {
			p.time(&pods.Items[i], r.cfg.Clock.Now())
		}
	}
	return o, nil
}

// Inspect implements port.Runner. It reads from the API server, unless the cache shows that the
// machine is gone, which is final.
func (r *Runner) Inspect(ctx context.Context, m port.Machine) (port.MachineStatus, error) {
	const what = "look the machine up"
	p, at := r.find(m)
	if p == nil {
		return port.MachineStatus{}, fmt.Errorf("cannot %s: %w", what, port.ErrNotFound)
	}
	if ctx.Err() != nil {
		return port.MachineStatus{}, failure(ctx, ctx.Err(), what)
	}
	if s := p.status(at, r.cfg); s.Phase == port.MachineGone {
		return s, nil
	}
	found, err := r.fetch(ctx, at)
	if err != nil {
		return port.MachineStatus{}, failure(ctx, err, what)
	}
	if !found.known() {
		return port.MachineStatus{}, fmt.Errorf("cannot %s: %w", what, port.ErrNotFound)
	}
	s := found.status(r.cfg.Cluster, at, p.patient(at.uid, r.cfg))
	if found.pod() == nil && s.Phase == port.MachineCreating && !isTrue(found.job.Spec.Suspend) {
		s.StartFault = r.refusal(ctx, at)
	}
	return s, nil
}

// The range of a wait.
const (
	waitLeast = time.Second
	waitMost  = time.Minute
)

// Wait implements port.Runner with the cache, or by calls.
func (r *Runner) Wait(ctx context.Context, m port.Machine, phase port.MachinePhase, limit time.Duration) (port.MachineStatus, error) {
	p, at := r.find(m)
	if p == nil {
		return port.MachineStatus{}, fmt.Errorf("cannot wait for the machine: %w", port.ErrNotFound)
	}
	changed, end := p.subscribe(at.uid)
	defer end()
	if r.cfg.Poll || !p.seen(at.uid).known() {
		if now, err := r.Inspect(ctx, m); err != nil || settled(now, phase) {
			return now, err
		}
	}
	over, stop := r.cfg.Clock.NewTimer(min(max(limit, waitLeast), waitMost))
	defer stop()
	for {
		if ctx.Err() != nil {
			return port.MachineStatus{}, failure(ctx, ctx.Err(), "wait for the machine")
		}
		if now, known := r.observed(ctx, p, at); known && settled(now, phase) {
			return now, nil
		}
		pause, end := r.cfg.Clock.NewTimer(observePause) // a pod becomes unschedulable by time
		select {
		case <-changed:
		case <-pause:
		case <-over:
			end()
			return r.Inspect(ctx, m)
		case <-ctx.Done():
		}
		end()
	}
}

// settled reports whether a wait for a phase is over.
func settled(now port.MachineStatus, phase port.MachinePhase) bool {
	return reached(now.Phase, phase) || phase == port.MachineRunning && now.StartFault != nil
}

// reached reports whether a phase is the wanted one or a later one. An unknown
// phase is neither.
func reached(now, wanted port.MachinePhase) bool {
	order := []port.MachinePhase{port.MachineUnknown, port.MachineCreating, port.MachineRunning, port.MachineEnding, port.MachineGone}
	return slices.Index(order, now) >= slices.Index(order, wanted)
}

// syncWait is how long List waits for the first response of the cluster.
const syncWait = 5 * time.Second

// List implements port.Runner with the cache, which it fills first if the Runner polls. It
// deletes Jobs that have been gone for Config.KeepFor.
func (r *Runner) List(ctx context.Context, each func(port.MachineStatus) bool) error {
	var failed []error
	for _, namespace := range r.cfg.Namespaces {
		p := r.parts[namespace]
		if err := r.ready(ctx, p); err != nil {
			failed = append(failed, failure(ctx, err, "list the machines of namespace "+namespace))
			continue
		}
		live, gone := r.split(p)
		for _, m := range live {
			if !each(m) {
				return nil
			}
		}
		r.reap(ctx, p, gone)
	}
	return errors.Join(failed...)
}

// ready waits for the first responses to the informers of a part, or reads the part. It returns
// why the cache is not up to date.
func (r *Runner) ready(ctx context.Context, p *part) error {
	if r.cfg.Poll {
		return p.read(ctx, r.cfg)
	}
	over, stop := r.cfg.Clock.NewTimer(syncWait)
	defer stop()
	for {
		err := p.health()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !errors.Is(err, errNotRead) {
			return err
		}
		pause, end := r.cfg.Clock.NewTimer(20 * time.Millisecond)
		select {
		case <-pause:
		case <-over:
			end()
			return err
		case <-ctx.Done():
		}
		end()
	}
}

// split returns the live machines of a part, and the places of those that are gone.
func (r *Runner) split(p *part) (live []port.MachineStatus, gone []place) {
	for _, at := range p.places() {
		switch s := p.status(at, r.cfg); s.Phase {
		case port.MachineGone:
			gone = append(gone, at)
		default:
			live = append(live, s)
		}
	}
	slices.SortFunc(live, func(a, b port.MachineStatus) int { return strings.Compare(a.Name, b.Name) })
	return live, gone
}

// remove deletes a Job with its pods and its Secret. It deletes pods without a Job too.
func (r *Runner) remove(ctx context.Context, at place, o objects) error {
	var failed []error
	refused := func(err error) {
		if err != nil && !apierrors.IsNotFound(err) {
			failed = append(failed, err)
		}
	}
	for _, p := range o.pods {
		refused(r.release(ctx, p))
		if o.job == nil {
			refused(r.deletePod(ctx, p, 0))
		}
	}
	if o.job != nil {
		refused(r.deleteJob(ctx, at))
	}
	return errors.Join(failed...)
}

func (r *Runner) deleteJob(ctx context.Context, at place) error {
	return r.cfg.Client.Jobs(at.namespace).Delete(ctx, at.name, metav1.DeleteOptions{
		PropagationPolicy: new(metav1.DeletePropagationBackground), Preconditions: metav1.NewUIDPreconditions(string(at.uid)),
	})
}

// deletePod deletes a pod: SIGTERM, and SIGKILL after the grace.
func (r *Runner) deletePod(ctx context.Context, p *corev1.Pod, grace time.Duration) error {
	return r.cfg.Client.Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(seconds(grace)), Preconditions: metav1.NewUIDPreconditions(string(p.UID)),
	})
}

// foreign returns the fault of a launch if the Job does not belong to the attempt.
func foreign(j *batchv1.Job, orchestrator string, spec port.LaunchSpec) *fault.Fault {
	if j.Labels[labelOwner] == orchestrator && owner(j) == spec.Owner {
		return nil
	}
	return fault.New(fault.LaunchRefused, "cannot launch the machine: its name belongs to another Job")
}
