package kubernetes

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// ttl is the time after which the cluster itself deletes a finished Job, for a Sortie instance
// that no longer runs. The pod remains, with its finalizer.
const ttl = 24 * time.Hour

// undisturbed are annotations that ask autoscalers not to evict the pod to save a node.
var undisturbed = map[string]string{
	"cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
	"karpenter.sh/do-not-disrupt":                    "true",
}

// checkSpec returns an error that names every problem of a specification.
func checkSpec(spec port.LaunchSpec) error {
	var problems []error
	refuse := func(is bool, format string, args ...any) {
		if is {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	refuse(!jobName.Matches(spec.Name), "malformed name %q, want 1 to 63 lower-case letters, digits and hyphens", spec.Name)
	refuse(spec.Image == "", "missing image")
	refuse(spec.CPUs < 1, "%d CPUs, want at least 1", spec.CPUs)
	refuse(spec.MemoryMB < 256 || spec.MemoryMB%256 != 0, "%d MB of memory, want a multiple of 256", spec.MemoryMB)
	for what, value := range map[string]string{"tenant": spec.Owner.Tenant, "run id": spec.Owner.RunID} {
		refuse(value == "" || strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c == 0x7f }), "malformed %s %q, want printable text", what, value)
	}
	return errors.Join(problems...)
}

// jobFor returns the Job of an attempt. secret is the name of its Secret.
func jobFor(cfg Config, namespace string, spec port.LaunchSpec, secret string) (*batchv1.Job, error) {
	if err := checkSpec(spec); err != nil {
		return nil, err
	}
	pod, err := podSpec(cfg.PodDefaults, spec, secret)
	if err != nil {
		return nil, err
	}
	labels, annotations := marks(cfg.Orchestrator, spec)
	notes := maps.Clone(annotations)
	maps.Copy(notes, undisturbed)
	own := maps.Clone(labels)
	if k := platform.SettingsOf[platform.KubernetesSettings](spec.Placement); k != nil {
		maps.Copy(own, k.Labels) // another domain than Sortie's, see platform.KubernetesSettings
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: spec.Name, Namespace: namespace, Labels: own, Annotations: annotations},
		Spec: batchv1.JobSpec{
			Parallelism: new(int32(1)), Completions: new(int32(1)), BackoffLimit: new(int32(0)),
			PodReplacementPolicy:    new(batchv1.Failed),
			TTLSecondsAfterFinished: new(int32(ttl / time.Second)),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(labels), Annotations: notes, Finalizers: []string{finalizer}},
				Spec:       pod,
			},
		},
	}
	if spec.MaxLife > 0 {
		job.Spec.ActiveDeadlineSeconds = new(seconds(spec.MaxLife))
	}
	return job, nil
}

// secretFor returns the Secret with the environment of a Job's worker.
func secretFor(job *batchv1.Job, env map[string]string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: secretOf(job), Namespace: job.Namespace, Labels: job.Spec.Template.Labels, Annotations: job.Annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
		},
		Immutable:  new(true),
		StringData: env,
		Type:       corev1.SecretTypeOpaque,
	}
}

// secretOf returns the name of the Secret of a Job, or "" for a Job that Sortie did not create.
func secretOf(job *batchv1.Job) string {
	for _, c := range job.Spec.Template.Spec.Containers {
		if n := len(c.EnvFrom); c.Name == container && n > 0 && c.EnvFrom[n-1].SecretRef != nil {
			return c.EnvFrom[n-1].SecretRef.Name
		}
	}
	return ""
}
