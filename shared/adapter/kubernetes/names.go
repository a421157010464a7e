package kubernetes

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// Labels and annotations of the Jobs, pods and Secrets of an attempt. A label has the value in
// a form that Kubernetes accepts. The annotation of the same name has the full value.
const (
	keyJob         = "job-id"
	keyRun         = "run-id"
	keyScheduledAt = "scheduled-at"
	// labelOwner distinguishes the Sortie instances that share a cluster.
	labelOwner = "sortie/orchestrator"
	keyTenant  = "sortie/tenant"
	keyAttempt = "sortie/attempt"
	// keyStopped marks a pod that was stopped before its program had ended, and a Job whose
	// machine was stopped before it had a pod. keyDestroyed marks a Job whose machine was
	// destroyed. The name of that Job is free when its pod has ended.
	keyStopped   = "sortie/stopped"
	keyDestroyed = "sortie/destroyed"
	// finalizer keeps a deleted pod, so that its status can be read.
	finalizer = "sortie/outcome"
	// labelJobUID is the label with which the job controller marks the pods of a Job.
	labelJobUID  = "batch.kubernetes.io/controller-uid"
	labelJobName = "batch.kubernetes.io/job-name"
	// container is the name of the worker's container.
	container = "worker"
)

// kind is the Runner of the machines of this adapter.
const kind = platform.RunnerKubernetes

const labelLimit = 63

var (
	labelValue = limit.Form{First: limit.Letters + limit.Digits, Rest: limit.Letters + limit.Digits + "._-", Last: limit.Letters + limit.Digits, Most: labelLimit}
	jobName    = limit.DNSLabel()
	nameSpace  = jobName
	objectUID  = limit.Form{First: limit.Lower + limit.Digits + "-", Rest: limit.Lower + limit.Digits + "-", Most: 64}
)

// label returns the value if it is valid in a label. Otherwise it returns a name that starts
// with the valid characters of the value and ends with 60 bits of its hash.
func label(value string) string {
	if labelValue.Matches(value) {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	tail := "-" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:12])
	readable := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_':
			return c
		}
		return '-'
	}, value)
	readable = strings.Trim(readable[:min(len(readable), labelLimit-len(tail))], "-._")
	return strings.Trim(readable+tail, "-")
}

// scheduled formats the time of a firing as in a run's id.
func scheduled(at time.Time) string { return at.UTC().Format("20060102T150405Z") }

// marks returns the labels and annotations of an attempt.
func marks(orchestrator string, spec port.LaunchSpec) (labels, annotations map[string]string) {
	labels = map[string]string{labelOwner: orchestrator, keyRun: label(spec.Owner.RunID)}
	annotations = map[string]string{
		keyTenant: spec.Owner.Tenant, keyRun: spec.Owner.RunID, keyAttempt: fmt.Sprint(spec.Owner.Attempt),
	}
	if spec.JobID != "" {
		labels[keyJob], annotations[keyJob] = label(spec.JobID), spec.JobID
	}
	if !spec.ScheduledAt.IsZero() {
		labels[keyScheduledAt] = scheduled(spec.ScheduledAt)
		annotations[keyScheduledAt] = spec.ScheduledAt.UTC().Format(time.RFC3339)
	}
	return labels, annotations
}

// owner returns the attempt of an object, or the zero value without one.
func owner(o metav1.Object) port.MachineOwner {
	a := o.GetAnnotations()
	attempt := 0
	if _, err := fmt.Sscanf(a[keyAttempt], "%d", &attempt); err != nil {
		return port.MachineOwner{}
	}
	return port.MachineOwner{Tenant: a[keyTenant], RunID: a[keyRun], Attempt: attempt}
}

// place identifies a Job.
type place struct {
	namespace, name string
	uid             types.UID
}

// id returns the place as in port.Machine.ID: the name of the Job and its UID, which
// distinguishes it from later Jobs with the name.
func (p place) id() string { return p.name + "." + string(p.uid) }

// placeOf returns the place of a machine. It returns false if the machine cannot belong to this
// cluster.
func placeOf(cluster string, m port.Machine) (place, bool) {
	name, uid, ok := strings.Cut(m.ID, ".")
	ok = ok && m.Cluster == cluster && nameSpace.Matches(m.App) && jobName.Matches(name) && objectUID.Matches(uid)
	return place{namespace: m.App, name: name, uid: types.UID(uid)}, ok
}

// jobOf returns the place of the Job that a pod belongs to.
func jobOf(p *corev1.Pod) place {
	return place{namespace: p.Namespace, name: p.Labels[labelJobName], uid: types.UID(p.Labels[labelJobUID])}
}
