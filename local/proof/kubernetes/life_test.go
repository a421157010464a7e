//go:build kubernetes

package kubernetes_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	adapter "github.com/sortie-dev/sortie/shared/adapter/kubernetes"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// job returns the launch of a shell script.
func job(name, script string) port.LaunchSpec {
	return port.LaunchSpec{
		Name: name, Image: shell, Command: []string{script}, CPUs: 1, MemoryMB: 256, StopGrace: 2 * time.Second, MaxLife: time.Hour,
		Env:   map[string]string{"GREETING": "hello"},
		Owner: port.MachineOwner{Tenant: "acme", RunID: "nightly:20250101T000000Z", Attempt: 1},
		JobID: "nightly", ScheduledAt: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC),
	}
}

// forever is a script that SIGTERM ends.
const forever = "trap 'exit 0' TERM; while :; do sleep 0.05; done"

func (s stage) launch(t *testing.T, spec port.LaunchSpec) port.MachineStatus {
	t.Helper()
	m, err := s.Launch(t.Context(), spec)
	if err != nil {
		t.Fatalf("cannot launch %s: %v", spec.Name, err)
	}
	return m
}

// gone waits until the machine is gone. It returns its exit, or nil if that is unknown.
func (s stage) gone(t *testing.T, m port.MachineStatus) *port.Exit {
	t.Helper()
	now, err := s.Wait(t.Context(), m.Machine, port.MachineGone, time.Minute)
	if err != nil || now.Phase != port.MachineGone {
		t.Fatalf("got %+v, %v, want a machine that is gone", now, err)
	}
	return now.Exit
}

// pod returns the pod of a machine.
func (s stage) pod(t *testing.T, m port.MachineStatus) *corev1.Pod {
	t.Helper()
	found, err := s.admin.CoreV1().Pods(m.App).List(t.Context(), metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name=" + m.Name})
	if err != nil || len(found.Items) != 1 {
		t.Fatalf("got %d pods, %v, want 1", len(found.Items), err)
	}
	return &found.Items[0]
}

func TestExitAndLogOfAProgram(t *testing.T) {
	t.Parallel()
	s := setup(t)
	m := s.launch(t, job("report", "echo $GREETING; echo '$GREETING' >&2; exit 3"))
	if exit := s.gone(t, m); exit == nil || exit.Code != 3 || exit.Signal != 0 || exit.Requested {
		t.Errorf("got exit %v, want code 3", exit)
	}
	// A kubelet does not keep the order between the two streams.
	if log, err := s.Logs(t.Context(), m.Machine); err != nil || !slices.Equal(slices.Sorted(strings.Lines(string(log))), []string{"$GREETING\n", "hello\n"}) {
		t.Errorf("got log %q, %v, want the lines of both streams", log, err)
	}
	if err := s.Destroy(t.Context(), m.Machine); err != nil {
		t.Fatal(err)
	}
	if log, err := s.Logs(t.Context(), m.Machine); err != nil || len(log) == 0 {
		t.Errorf("got log %q, %v after Destroy, want it kept", log, err)
	}
	labels := s.pod(t, m).Labels
	if labels["job-id"] != "nightly" || labels["scheduled-at"] != "20250101T000000Z" || !strings.HasPrefix(labels["run-id"], "nightly-20250101T000000Z-") {
		t.Errorf("got labels %v", labels)
	}
}

func TestLogOfARunningProgram(t *testing.T) {
	t.Parallel()
	s := setup(t)
	m := s.launch(t, job("talks", "echo begun; "+forever))
	s.await(t, "log", func() bool {
		log, err := s.Logs(t.Context(), m.Machine)
		return err == nil && string(log) == "begun\n"
	})
}

func TestMachineThatIsKeptIsDeletedLater(t *testing.T) {
	t.Parallel()
	s := setup(t, func(c *adapter.Config) { c.KeepFor = time.Nanosecond })
	m := s.launch(t, job("reaped", "exit 0"))
	s.gone(t, m)
	s.await(t, "deletion of the Job, its pod and its Secret", func() bool {
		if err := s.List(t.Context(), func(port.MachineStatus) bool { return true }); err != nil {
			t.Fatal(err)
		}
		pods, noPods := s.admin.CoreV1().Pods(m.App).List(t.Context(), metav1.ListOptions{})
		jobs, noJobs := s.admin.BatchV1().Jobs(m.App).List(t.Context(), metav1.ListOptions{})
		secrets, noSecrets := s.admin.CoreV1().Secrets(m.App).List(t.Context(), metav1.ListOptions{})
		return noPods == nil && noJobs == nil && noSecrets == nil && len(pods.Items)+len(jobs.Items)+len(secrets.Items) == 0
	})
}

func TestStopBeforeTheStart(t *testing.T) {
	t.Parallel()
	s := setup(t, func(c *adapter.Config) { c.StartWait, c.Unschedulable = time.Second, time.Hour })
	spec := job("waits", forever)
	spec.PodSpec = []byte(`{"nodeSelector": {"disk": "none"}}`)
	m := s.launch(t, spec)
	if m.Phase != port.MachineCreating {
		t.Fatalf("got phase %s, want creating", m.Phase)
	}
	if err := s.Stop(t.Context(), m.Machine, time.Second); err != nil {
		t.Fatal(err)
	}
	if exit := s.gone(t, m); exit != nil && (exit.Signal != 0 || !exit.Requested) {
		t.Errorf("got exit %+v of a program that never ran, want no signal", exit)
	}
}

func TestQuota(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for name, resources := range map[string]corev1.ResourceList{
		"pods": {corev1.ResourcePods: resource.MustParse("0")},
		"jobs": {"count/jobs.batch": resource.MustParse("0")},
	} {
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ResourceQuotaSpec{Hard: resources}}
		quotas := s.admin.CoreV1().ResourceQuotas(s.namespaces[0])
		if _, err := quotas.Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		s.await(t, "quota", func() bool {
			got, err := quotas.Get(t.Context(), name, metav1.GetOptions{})
			return err == nil && len(got.Status.Hard) > 0
		})
		_, err := s.Launch(t.Context(), job("no-"+name, "exit 0"))
		if !fault.Is(err, fault.Capacity) || !strings.Contains(err.Error(), "exceeded quota: "+name) {
			t.Errorf("%s: got error %v, want %s with the cluster's words", name, err, fault.Capacity)
		}
		if err := quotas.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		s.await(t, "namespace without quotas", func() bool {
			m, err := s.Launch(t.Context(), job("after-"+name, "exit 0"))
			return err == nil && s.gone(t, m) != nil
		})
	}
}

func TestPodThatTheClusterRefuses(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for document, want := range map[string]string{
		`{"securityContext": {"runAsNonRoot": false}}`: "podSpec.securityContext.runAsNonRoot: not allowed",
		`{"priorityClassName": "unknown"}`:             "no PriorityClass with name unknown was found",
		`{"volumes": [{"name": "a"}, {"name": "a"}]}`:  "volumes[1].name: Duplicate value",
	} {
		spec := job("refused", "exit 0")
		spec.PodSpec = []byte(document)
		_, err := s.Launch(t.Context(), spec)
		if !fault.Is(err, fault.LaunchRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %s with %q", document, err, fault.LaunchRefused, want)
		}
	}
}

func TestEviction(t *testing.T) {
	t.Parallel()
	s := setup(t)
	m := s.launch(t, job("evicted", forever))
	pod := s.pod(t, m)
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace}}
	if err := s.admin.CoreV1().Pods(pod.Namespace).EvictV1(t.Context(), eviction); err != nil {
		t.Fatal(err)
	}
	if exit := s.gone(t, m); exit == nil || !exit.Requested || exit.Code != 0 {
		t.Errorf("got exit %v, want one on request", exit)
	}
}

// TestJobDeletedByHand checks that the finalizer keeps the exit.
func TestJobDeletedByHand(t *testing.T) {
	t.Parallel()
	s := setup(t)
	m := s.launch(t, job("deleted", forever))
	if err := s.admin.BatchV1().Jobs(m.App).Delete(t.Context(), m.Name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}); err != nil {
		t.Fatal(err)
	}
	exit := s.gone(t, m)
	if exit == nil || !exit.Requested || exit.Code != 0 {
		t.Errorf("got exit %v, want one on request", exit)
	}
	if now, err := s.Inspect(t.Context(), m.Machine); err != nil || now.Phase != port.MachineGone || now.Owner != m.Owner {
		t.Errorf("got %+v, %v, want the machine that is gone", now, err)
	}
}
