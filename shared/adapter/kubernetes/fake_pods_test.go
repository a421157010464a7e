package kubernetes

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	clienttesting "k8s.io/client-go/testing"
)

// createPod acts as the job controller.
func (c *cluster) createPod(job *batchv1.Job, full bool) {
	p := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: *job.Spec.Template.Spec.DeepCopy()}
	p.Namespace, p.Name, p.UID, p.CreationTimestamp = job.Namespace, job.Name+"-x", uuid.NewUUID(), metav1.Now()
	p.Labels[labelJobName], p.Labels[labelJobUID] = job.Name, string(job.UID)
	p.Status.Phase, p.Spec.NodeName = corev1.PodPending, "node"
	if full {
		p.Spec.NodeName = ""
		p.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available",
		}}
	}
	reason, message := "CreateContainerConfigError", `secret "`+secretOf(job)+`" not found`
	if p.Spec.Containers[0].Image == noImage {
		reason, message = "ErrImagePull", "manifest unknown"
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: container, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
	}}
	c.check(c.Tracker().Create(podsKind, p, p.Namespace))
}

// exit sets the status that the node reports for an ended program.
func (c *cluster) exit(p *corev1.Pod, code int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p = c.pod(p.Namespace, p.Name); p == nil {
		return
	}
	p.Status.Phase = corev1.PodFailed
	if code == 0 {
		p.Status.Phase = corev1.PodSucceeded
	}
	p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: int32(code), FinishedAt: metav1.Now(), //nolint:gosec // G115: below 256
	}}
	c.check(c.Tracker().Update(podsKind, p, p.Namespace))
}

// pod returns a copy of a pod, or nil if it does not exist.
func (c *cluster) pod(namespace, name string) *corev1.Pod {
	found, err := c.Tracker().Get(podsKind, namespace, name)
	if err != nil {
		return nil
	}
	return found.(*corev1.Pod).DeepCopy()
}

func (c *cluster) deletePod(a clienttesting.Action) (bool, runtime.Object, error) {
	deletion := a.(clienttesting.DeleteActionImpl)
	grace := deletion.DeleteOptions.GracePeriodSeconds
	c.endPod(deletion.GetNamespace(), deletion.Name, *grace)
	return true, nil, nil
}

// endPod marks a pod as deleted, and stops its program.
func (c *cluster) endPod(namespace, name string, grace int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pod(namespace, name)
	if p == nil {
		return
	}
	first := p.DeletionTimestamp == nil
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.NewTime(time.Now().Add(time.Duration(grace)*time.Second))), &grace
	run := c.programs[p.UID]
	switch {
	case len(p.Finalizers) == 0 && (run == nil || ended(p)):
		c.check(c.Tracker().Delete(podsKind, namespace, name))
		return
	case run == nil:
		p.Status.Phase = corev1.PodFailed
	}
	c.check(c.Tracker().Update(podsKind, p, namespace))
	if run != nil {
		if first {
			close(run.terminated)
		}
		time.AfterFunc(time.Duration(grace)*time.Second, run.kill)
	}
}

// patchPod removes a pod whose last finalizer is removed. A patch reads and writes the pod.
func (c *cluster) patchPod(a clienttesting.Action) (bool, runtime.Object, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, changed, err := clienttesting.ObjectReaction(c.Tracker())(a)
	if p, ok := changed.(*corev1.Pod); ok && err == nil && len(p.Finalizers) == 0 && p.DeletionTimestamp != nil && ended(p) {
		err = c.Tracker().Delete(podsKind, p.Namespace, p.Name)
	}
	return true, changed, err
}
