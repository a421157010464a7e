package kubernetes

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// unschedulable returns the condition of a pod that the scheduler cannot bind to a node, or nil
// for another pod.
func unschedulable(p *corev1.Pod) *corev1.PodCondition {
	c := podCondition(p, corev1.PodScheduled)
	if c == nil || c.Status != corev1.ConditionFalse || c.Reason != corev1.PodReasonUnschedulable {
		return nil
	}
	return c
}

// startProblem returns why a pod does not start. It returns nil if the pod starts, has started,
// or may start. job is the name of its Job. The name of the Secret that is created after the
// Job starts with it. patient means that the pod may still be unschedulable.
func startProblem(p *corev1.Pod, job string, patient bool) *fault.Fault {
	if c := unschedulable(p); c != nil && !patient {
		return fault.New(fault.Capacity, "cannot launch the machine: the cluster cannot schedule the pod: %s", words(c.Reason, c.Message))
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil {
			if f := waitingProblem(*w, job); f != nil {
				return f
			}
		}
		if t := c.State.Terminated; t != nil && slices.Contains([]string{"StartError", "ContainerCannotRun"}, t.Reason) {
			return fault.New(fault.Image, "cannot launch the machine: the cluster cannot start the program: %s", words(t.Reason, t.Message))
		}
	}
	return nil
}

// suspendedWords describe a Job that another controller, such as Kueue, has suspended until its
// queue has room.
const suspendedWords = "the Job is suspended by another controller of the cluster"

// waiting returns why a pod that may start has not started, or "" if the cluster reports no
// reason. job is the name of its Job.
func (o objects) waiting(job string) string {
	p := o.pod()
	if p == nil {
		if o.job != nil && isTrue(o.job.Spec.Suspend) && !withdrawn(o.job) {
			return suspendedWords
		}
		return ""
	}
	if c := unschedulable(p); c != nil {
		return words(c.Reason, c.Message)
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil && w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" && !awaitsSecret(*w, job) {
			return words(w.Reason, w.Message)
		}
	}
	return ""
}

// awaitsSecret reports whether a container needs the Secret of its attempt, which is
// created after the Job.
func awaitsSecret(w corev1.ContainerStateWaiting, job string) bool {
	message := strings.ToLower(w.Message)
	return strings.Contains(message, `secret "`+job+`-`) && strings.Contains(message, `" not found`)
}

// permanent lists parts of the messages of registries for images that another try cannot pull
// either.
var permanent = []string{"not found", "manifest unknown", "denied", "unauthorized", "no match for platform", "does not exist"}

func waitingProblem(w corev1.ContainerStateWaiting, job string) *fault.Fault {
	message := strings.ToLower(w.Message)
	has := func(word string) bool { return strings.Contains(message, word) }
	switch w.Reason {
	case "ErrImagePull":
		if !slices.ContainsFunc(permanent, has) {
			return nil // it tries again
		}
	case "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "SignatureValidationFailed":
	case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
		if awaitsSecret(w, job) {
			return nil
		}
		return fault.New(fault.LaunchRefused, "cannot launch the machine: the cluster cannot create the container: %s", words(w.Reason, w.Message))
	default:
		return nil
	}
	return fault.New(fault.Image, "cannot launch the machine: the cluster cannot use the image: %s", words(w.Reason, w.Message))
}

// refusedPod returns the fault of a Job that cannot get a pod, from the message of its event
// FailedCreate. It returns nil if a further try of the job controller may succeed.
func refusedPod(message string) *fault.Fault {
	switch {
	case strings.Contains(message, "exceeded quota"):
		return fault.New(fault.Capacity, "cannot launch the machine: the namespace has no room: %s", words("", message))
	case strings.Contains(message, "forbidden"), strings.Contains(message, "denied the request"), strings.Contains(message, "is invalid"):
		return fault.New(fault.LaunchRefused, "cannot launch the machine: the cluster refuses the pod: %s", words("", message))
	}
	return nil
}

// wordsLimit is the longest part of a message of the cluster in a fault, in bytes.
const wordsLimit = 1000

// words returns the reason and the message of the cluster on one line.
func words(reason, message string) string {
	message = strings.ToValidUTF8(strings.Join(strings.Fields(message), " "), "")
	if len(message) > wordsLimit {
		message = strings.ToValidUTF8(message[:wordsLimit], "") + " ..."
	}
	if reason == "" || message == "" {
		return reason + message
	}
	return reason + ": " + message
}
