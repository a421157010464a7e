package kubernetes

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// Launch implements port.Runner. It creates the Job and its Secret, or adopts the Job of the
// same name and owner. Then it observes the pod until it starts or the cluster reports why it
// does not. In that case it destroys the machine. Inspect still shows the end of that machine,
// because a sweep may have found it.
func (r *Runner) Launch(ctx context.Context, spec port.LaunchSpec) (port.MachineStatus, error) {
	if ctx.Err() != nil {
		return port.MachineStatus{}, failure(ctx, ctx.Err(), "launch the machine")
	}
	p, err := r.partFor(spec)
	if err != nil {
		return port.MachineStatus{}, err
	}
	job, err := jobFor(r.cfg, p.namespace, spec, secretName(spec.Name))
	if err != nil {
		return port.MachineStatus{}, fault.Wrap(err, fault.LaunchRefused, "cannot launch the machine: %v", err)
	}
	made, adopted, err := r.create(ctx, job, spec)
	if err != nil {
		return port.MachineStatus{}, err
	}
	at := place{p.namespace, made.Name, made.UID}
	if err := r.ensureSecret(ctx, made, spec, adopted); err != nil {
		return port.MachineStatus{}, err
	}
	status, refused := r.awaitStart(ctx, p, at)
	if refused != nil {
		return port.MachineStatus{}, r.withdraw(ctx, p, at, refused)
	}
	if !status.Known() || status.Owner != spec.Owner { // the cache does not contain it yet
		status = objects{job: made}.status(r.cfg.Cluster, at, true)
	}
	return status, nil
}

// partFor returns the part with the namespace of a launch.
func (r *Runner) partFor(spec port.LaunchSpec) (*part, error) {
	namespace := r.cfg.Namespaces[0]
	if k := platform.SettingsOf[platform.KubernetesSettings](spec.Placement); k != nil {
		if k.Cluster != "" && k.Cluster != r.cfg.Cluster {
			return nil, fault.New(fault.LaunchRefused, "cannot launch the machine: unknown cluster %q, want %s", k.Cluster, r.cfg.Cluster)
		}
		if k.Namespace != "" {
			namespace = k.Namespace
		}
	}
	p := r.parts[namespace]
	if p == nil {
		return nil, fault.New(fault.LaunchRefused, "cannot launch the machine: namespace %q is not one of the deployment, want %s",
			namespace, strings.Join(r.cfg.Namespaces, " or "))
	}
	return p, nil
}

// secretName returns a name that cannot be guessed, so that the pod of another job cannot
// refer to the Secret.
func secretName(machine string) string { return machine + "-" + strings.ToLower(rand.Text()) }

// create creates the Job, or returns the existing Job of the attempt.
func (r *Runner) create(ctx context.Context, job *batchv1.Job, spec port.LaunchSpec) (made *batchv1.Job, adopted bool, err error) {
	for range 2 {
		made, err = r.cfg.Client.Jobs(job.Namespace).Create(ctx, job, metav1.CreateOptions{})
		if err == nil {
			return made, false, nil
		}
		taken := apierrors.IsAlreadyExists(err)
		if refused := launchFailure(err); refused != nil && !taken {
			return nil, false, refused
		}
		made, free, err := r.adopt(ctx, job, spec, err, taken)
		if !free {
			return made, true, err
		}
	}
	return nil, false, fault.Wrap(err, fault.Unavailable, "cannot launch the machine: its name is being freed")
}

// adopt returns the Job with the name if it belongs to the attempt. free reports that it
// belonged to a destroyed machine and is deleted. cause is the error of the creation. taken
// means that the name exists.
func (r *Runner) adopt(ctx context.Context, job *batchv1.Job, spec port.LaunchSpec, cause error, taken bool) (found *batchv1.Job, free bool, err error) {
	const what = "launch the machine"
	found, err = r.cfg.Client.Jobs(job.Namespace).Get(ctx, job.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && taken:
		return nil, true, nil
	case apierrors.IsNotFound(err):
		return nil, false, failure(ctx, cause, what)
	case err != nil:
		return nil, false, failure(ctx, err, what)
	}
	if found.Labels[labelOwner] != r.cfg.Orchestrator || !destroyed(found) {
		if f := foreign(found, r.cfg.Orchestrator, spec); f != nil {
			return nil, false, f
		}
		r.cfg.Log.Info("adopted the Job that has the name", "run_id", spec.Owner.RunID, "attempt", spec.Owner.Attempt, "machine", found.Name)
		return found, false, nil
	}
	at := place{found.Namespace, found.Name, found.UID}
	old, err := r.fetch(ctx, at)
	if err != nil {
		return nil, false, failure(ctx, err, what)
	}
	if s := old.status(r.cfg.Cluster, at, true); s.Phase != port.MachineGone && old.known() {
		return nil, false, fault.New(fault.Unavailable, "cannot %s: the machine that had its name still ends", what)
	}
	if err := r.remove(ctx, at, old); err != nil {
		return nil, false, failure(ctx, err, what)
	}
	return nil, true, nil
}

// ensureSecret creates the Secret of a Job. The Secret of an adopted Job may exist.
func (r *Runner) ensureSecret(ctx context.Context, job *batchv1.Job, spec port.LaunchSpec, adopted bool) error {
	secrets := r.cfg.Client.Secrets(job.Namespace)
	if adopted && (finished(job) || job.Status.Ready != nil && *job.Status.Ready > 0) {
		return nil // its pod has the environment
	}
	_, err := secrets.Create(ctx, secretFor(job, spec.Env), metav1.CreateOptions{})
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		return nil
	case launchFailure(err) == nil || adopted:
		return failure(ctx, err, "launch the machine") // the next launch adopts the Job
	}
	at := place{job.Namespace, job.Name, job.UID}
	return r.withdraw(ctx, r.parts[job.Namespace], at, launchFailure(err))
}

// observePause is the pause between two checks of the state that is not watched: the time, and
// the events of a Job without a pod.
const observePause = time.Second

// awaitStart observes a Job until its pod has started, the start has failed, or StartWait is
// over. The status is zero while the cache does not contain the Job.
func (r *Runner) awaitStart(ctx context.Context, p *part, at place) (now port.MachineStatus, refused *fault.Fault) {
	changed, end := p.subscribe(at.uid)
	defer end()
	begun := r.cfg.Clock.Now()
	for {
		waited := r.cfg.Clock.Now().Sub(begun)
		seen := r.look(ctx, p, at)
		if seen.known() {
			now = seen.status(r.cfg.Cluster, at, true)
		}
		if pod := seen.pod(); pod != nil {
			if f := startProblem(pod, at.name, waited < r.cfg.Unschedulable); f != nil {
				return now, f
			}
		} else if seen.job != nil && waited >= observePause {
			if f := r.refusal(ctx, at); f != nil {
				return now, f
			}
		}
		held := seen.job != nil && isTrue(seen.job.Spec.Suspend) // by another controller, for a queue of the cluster
		if now.Phase != "" && reached(now.Phase, port.MachineRunning) || held || waited >= r.cfg.StartWait || ctx.Err() != nil {
			return now, nil
		}
		pause, stop := r.cfg.Clock.NewTimer(observePause)
		select {
		case <-changed:
		case <-pause:
		case <-ctx.Done():
		}
		stop()
	}
}

// refusal returns why the job controller cannot create the pod of a Job, which only the events
// of the Job show. It returns nil if they show nothing.
func (r *Runner) refusal(ctx context.Context, at place) *fault.Fault {
	events, err := r.cfg.Client.Events(at.namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "involvedObject.uid=" + string(at.uid) + ",reason=FailedCreate", Limit: 10,
	})
	if err != nil {
		return nil //nolint:nilerr // the start limit ends the wait
	}
	for _, e := range events.Items {
		if e.InvolvedObject.UID == at.uid && e.Reason == "FailedCreate" {
			if f := refusedPod(e.Message); f != nil {
				return f
			}
		}
	}
	return nil
}

// forgetTime limits how long a failed launch waits until the cache shows that its machine is
// gone.
const forgetTime = 2 * time.Second

// withdraw destroys the machine of a failed launch and returns its fault. If that fails,
// the machine may still start.
func (r *Runner) withdraw(ctx context.Context, p *part, at place, why *fault.Fault) error {
	changed, end := p.subscribe(at.uid)
	defer end()
	if err := r.Destroy(ctx, port.Machine{Runner: kind, Cluster: r.cfg.Cluster, App: at.namespace, ID: at.id()}); err != nil {
		return fault.Wrap(err, fault.Unavailable, "%s; and the machine was not destroyed", why.Message)
	}
	over, stop := r.cfg.Clock.NewTimer(forgetTime)
	defer stop()
	for {
		if now, known := r.observed(ctx, p, at); known && now.Phase == port.MachineGone {
			return why
		}
		pause, end := r.cfg.Clock.NewTimer(observePause)
		select {
		case <-changed:
			end()
		case <-pause:
		case <-over:
			end()
			return why
		case <-ctx.Done():
			end()
			return why
		}
	}
}
