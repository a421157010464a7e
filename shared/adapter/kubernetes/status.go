package kubernetes

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/sortie-dev/sortie/shared/port"
)

// objects are a Job and its pods. The Job is nil after its deletion. There is usually at most
// one pod; in rare cases the job controller creates two.
type objects struct {
	job  *batchv1.Job
	pods []*corev1.Pod
}

// known reports whether the machine has any objects.
func (o objects) known() bool { return o.job != nil || len(o.pods) > 0 }

// pod returns the relevant pod: one that has not ended, otherwise the newest. It returns nil
// without pods.
func (o objects) pod() *corev1.Pod {
	var best *corev1.Pod
	for _, p := range o.pods {
		switch {
		case best == nil, ended(best) && !ended(p):
			best = p
		case ended(best) == ended(p) && best.CreationTimestamp.Before(&p.CreationTimestamp):
			best = p
		}
	}
	return best
}

// status returns the status of the machine with these objects. patient means that its pod may
// still be unschedulable.
func (o objects) status(cluster string, at place, patient bool) port.MachineStatus {
	s := port.MachineStatus{Machine: port.Machine{Runner: kind, Cluster: cluster, App: at.namespace, ID: at.id()}, Name: at.name, Phase: port.MachineUnknown}
	pod := o.pod()
	switch {
	case o.job != nil:
		s.Owner, s.CreatedAt = owner(o.job), o.job.CreationTimestamp.UTC()
	case pod != nil:
		s.Owner, s.CreatedAt = owner(pod), pod.CreationTimestamp.UTC()
	}
	switch {
	case pod != nil:
		s.Phase, s.Address = podPhase(pod), pod.Status.PodIP
		if s.Phase == port.MachineGone {
			s.Exit = podExit(pod)
		}
		if s.Phase == port.MachineCreating || s.Phase == port.MachineGone && !interrupted(pod) && pod.DeletionTimestamp == nil {
			s.StartFault = startProblem(pod, at.name, patient)
		}
		if s.StartFault != nil {
			s.Exit = nil // the program has not run
		}
	case o.job != nil:
		s.Phase = jobPhase(o.job)
	}
	if s.Phase == port.MachineCreating && s.StartFault == nil {
		s.Waiting = o.waiting(at.name)
	}
	return s
}

// ended reports whether none of the pod's containers runs or will run. The scheduler does not
// bind a deleted pod to a node.
func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed || p.DeletionTimestamp != nil && p.Spec.NodeName == ""
}

func podPhase(p *corev1.Pod) port.MachinePhase {
	c := worker(p)
	switch {
	case ended(p):
		return port.MachineGone
	case p.DeletionTimestamp != nil, c != nil && c.State.Terminated != nil:
		return port.MachineEnding
	case c != nil && c.State.Running != nil:
		return port.MachineRunning
	}
	return port.MachineCreating
}

// jobPhase returns the phase of a Job without pods.
func jobPhase(j *batchv1.Job) port.MachinePhase {
	switch {
	case finished(j), withdrawn(j) && condition(j, batchv1.JobSuspended) != nil:
		return port.MachineGone
	case j.DeletionTimestamp != nil, withdrawn(j):
		return port.MachineEnding
	}
	return port.MachineCreating
}

// withdrawn reports whether Sortie suspended the Job, so that no pod is created.
func withdrawn(j *batchv1.Job) bool {
	_, stopped := j.Annotations[keyStopped]
	return isTrue(j.Spec.Suspend) && (stopped || destroyed(j))
}

func destroyed(j *batchv1.Job) bool { _, ok := j.Annotations[keyDestroyed]; return ok }

func finished(j *batchv1.Job) bool {
	return condition(j, batchv1.JobComplete) != nil || condition(j, batchv1.JobFailed) != nil
}

func condition(j *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i, c := range j.Status.Conditions {
		if c.Type == kind && c.Status == corev1.ConditionTrue {
			return &j.Status.Conditions[i]
		}
	}
	return nil
}

func podCondition(p *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == kind {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

// worker returns the status of the worker's container, or nil before it exists.
func worker(p *corev1.Pod) *corev1.ContainerStatus {
	for i := range p.Status.ContainerStatuses {
		if p.Status.ContainerStatuses[i].Name == container {
			return &p.Status.ContainerStatuses[i]
		}
	}
	return nil
}

// Reasons of terminated containers and pods.
const (
	reasonOOM = "OOMKilled"
	// reasonLost means that the container was not found when its pod was stopped.
	reasonLost = "ContainerStatusUnknown"
)

// killed is the exit code of a program that SIGKILL has ended.
const killed = 128 + 9

// podExit returns how the worker of an ended pod exited. It returns nil for a pod that ended
// without a program and was not stopped. The exit of a program that never ran has no signal.
func podExit(p *corev1.Pod) *port.Exit {
	c := worker(p)
	if c == nil || c.State.Terminated == nil {
		if !interrupted(p) && p.DeletionTimestamp == nil {
			return nil
		}
		exit := &port.Exit{Code: killed, Requested: true, At: stoppedAt(p)}
		if c != nil && c.State.Running != nil { // its node was lost
			exit.Signal = 9
		}
		return exit
	}
	t := c.State.Terminated
	exit := &port.Exit{Code: int(t.ExitCode), Signal: int(t.Signal), OOM: t.Reason == reasonOOM, At: t.FinishedAt.UTC()}
	_, stopped := p.Annotations[keyStopped]
	exit.Requested = stopped || interrupted(p) || deletedBefore(p, t.FinishedAt.Time)
	if exit.Code == killed && exit.Signal == 0 && (exit.Requested || exit.OOM || t.Reason == reasonLost) {
		exit.Signal = 9
	}
	if t.FinishedAt.IsZero() {
		exit.At = stoppedAt(p)
	}
	return exit
}

// interrupted reports whether the cluster itself ended the pod: for another pod, for its
// node, or because the node has no room.
func interrupted(p *corev1.Pod) bool {
	c := podCondition(p, corev1.DisruptionTarget)
	return c != nil && c.Status == corev1.ConditionTrue || p.Status.Reason == "Evicted"
}

// deletedBefore reports whether the deletion of the pod was requested before or at a time.
// Times of the cluster are whole seconds.
func deletedBefore(p *corev1.Pod, at time.Time) bool {
	if p.DeletionTimestamp == nil {
		return false
	}
	requested := p.DeletionTimestamp.Time
	if p.DeletionGracePeriodSeconds != nil {
		requested = requested.Add(-time.Duration(*p.DeletionGracePeriodSeconds) * time.Second)
	}
	return at.IsZero() || !at.Before(requested)
}

// stoppedAt returns when a pod without the status of its program ended, or the zero time if it
// is unknown.
func stoppedAt(p *corev1.Pod) time.Time {
	if c := podCondition(p, corev1.DisruptionTarget); c != nil {
		return c.LastTransitionTime.UTC()
	}
	if p.DeletionTimestamp != nil {
		return p.DeletionTimestamp.UTC()
	}
	return time.Time{}
}
