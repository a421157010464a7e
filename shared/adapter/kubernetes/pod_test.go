package kubernetes

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

var update = flag.Bool("update", false, "write the golden files")

// example is the launch of a firing.
func example() port.LaunchSpec {
	return port.LaunchSpec{
		Name: "nightly-20250101t000000z-abcdefghijkl-a2", Image: "registry.example.org/report:v1", Command: []string{"-c", "echo $HOME $(NAME)"},
		Region: "eu-central-1", CPUs: 2, MemoryMB: 512, StopGrace: 1500 * time.Millisecond, MaxLife: 90 * time.Minute,
		Env:   map[string]string{"TASK_TOKEN": "eyJ-token"},
		Owner: port.MachineOwner{Tenant: "acme", RunID: "nightly:20250101T000000Z", Attempt: 2},
		JobID: "nightly", ScheduledAt: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC),
	}
}

func TestJobOfAnAttempt(t *testing.T) {
	t.Parallel()
	job, err := jobFor(Config{Orchestrator: "test"}, "runs", example(), "the-secret")
	if err != nil {
		t.Fatal(err)
	}
	got, err := yaml.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/job.yaml"
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil { //nolint:gosec // G306: a file of the repository
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("-%s +got, \"-update\" writes it:\n%s", golden, diff)
	}
	if strings.Contains(string(got), example().Env["TASK_TOKEN"]) {
		t.Error("got the worker's token in the Job, want it in the Secret alone")
	}
	secret := secretFor(job, example().Env)
	if secret.Name != "the-secret" || secret.StringData["TASK_TOKEN"] != "eyJ-token" || len(secret.OwnerReferences) != 1 || secret.OwnerReferences[0].Kind != "Job" {
		t.Errorf("got Secret %+v, want one with the environment that the Job owns", secret)
	}
}

func TestPodSpecLayers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		deployment, pool, job string
		check                 func(p corev1.PodSpec) bool
	}{
		"nothing": {check: func(p corev1.PodSpec) bool {
			return len(p.Containers) == 1 && p.Containers[0].Image == "registry.example.org/report:v1"
		}},
		"a layer replaces a value of an earlier one": {
			`{"priorityClassName": "low", "schedulerName": "a"}`, `{"priorityClassName": "middle"}`, `{"priorityClassName": "high"}`,
			func(p corev1.PodSpec) bool { return p.PriorityClassName == "high" && p.SchedulerName == "a" },
		},
		"node selectors are merged": {
			`{"nodeSelector": {"a": "1", "b": "1"}}`, ``, `{"nodeSelector": {"b": "2"}}`,
			func(p corev1.PodSpec) bool { return p.NodeSelector["a"] == "1" && p.NodeSelector["b"] == "2" },
		},
		"containers are merged whatever their names": {
			`{"containers": [{"name": "x", "env": [{"name": "A", "value": "1"}]}]}`, ``, `{"containers": [{"name": "y", "env": [{"name": "B", "value": "2"}]}]}`,
			func(p corev1.PodSpec) bool {
				return len(p.Containers) == 1 && p.Containers[0].Name == "worker" && len(p.Containers[0].Env) == 2
			},
		},
		"image and arguments are those of the launch": {
			``, ``, `{"containers": [{"name": "x", "image": "evil", "args": ["x"], "command": ["/bin/sh"]}]}`,
			func(p corev1.PodSpec) bool {
				c := p.Containers[0]
				return c.Image == "registry.example.org/report:v1" && c.Args[1] == "echo $$HOME $$(NAME)" && c.Command[0] == "/bin/sh"
			},
		},
		"variables of Sortie are not replaced": {
			``, ``, `{"containers": [{"name": "x", "env": [{"name": "TASK_TOKEN", "value": "mine"}, {"name": "OWN", "value": "1"}]}]}`,
			func(p corev1.PodSpec) bool {
				c := p.Containers[0]
				return len(c.Env) == 1 && c.Env[0].Name == "OWN" && c.EnvFrom[0].SecretRef.Name == "the-secret"
			},
		},
		"what Sortie must set": {
			``, ``, `{"restartPolicy": "Always", "terminationGracePeriodSeconds": 3600, "automountServiceAccountToken": true, "enableServiceLinks": true}`,
			func(p corev1.PodSpec) bool {
				return p.RestartPolicy == corev1.RestartPolicyNever && *p.TerminationGracePeriodSeconds == 2 && !*p.AutomountServiceAccountToken && !*p.EnableServiceLinks
			},
		},
		"resources of the specification": {
			``, ``, `{"containers": [{"name": "x", "resources": {"limits": {"memory": "4Gi", "example.org/gpu": "1"}}}]}`,
			func(p corev1.PodSpec) bool {
				r := p.Containers[0].Resources
				return r.Limits.Memory().Value() == 4<<30 && r.Requests.Memory().Value() == 512<<20 && r.Requests.Cpu().Value() == 2
			},
		},
		"security of the specification": {
			``, ``, `{"securityContext": {"runAsUser": 1000}, "initContainers": [{"name": "proxy", "image": "p", "restartPolicy": "Always"}]}`,
			func(p corev1.PodSpec) bool {
				s := p.SecurityContext
				return *s.RunAsUser == 1000 && *s.RunAsNonRoot && s.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault &&
					!*p.InitContainers[0].SecurityContext.AllowPrivilegeEscalation
			},
		},
		"an operator's pool may do more": {
			``, `{"serviceAccountName": "reports"}`, ``,
			func(p corev1.PodSpec) bool { return p.ServiceAccountName == "reports" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := example()
			spec.PodSpec = json.RawMessage(test.job)
			spec.Settings = &platform.KubernetesSettings{PodDefaults: json.RawMessage(test.pool)}
			pod, err := podSpec(json.RawMessage(test.deployment), spec, "the-secret")
			if err != nil || !test.check(pod) {
				t.Errorf("got %+v, %v", pod, err)
			}
		})
	}
}

func TestPodSpecIsChecked(t *testing.T) {
	t.Parallel()
	for document, want := range map[string]string{
		`{}`:                                 "",
		`{"nodeSelector": {"disk": "ssd"}}`:  "",
		`{"nodeSelectr": {}}`:                `podSpec: unknown field "nodeSelectr"`,
		`{"containers": [{"imag": "x"}]}`:    `podSpec: unknown field "containers[0].imag"`,
		`{"priority": "high"}`:               "podSpec: ",
		`{"containers": [{}, {}]}`:           "podSpec.containers: 2 containers, want one",
		`{"hostPID": true, "hostIPC": true}`: "podSpec.hostPID: not allowed, it reaches the node; leave it out\npodSpec.hostIPC: not allowed, it reaches the node; leave it out",
	} {
		got := ""
		if err := join(CheckPodSpec(json.RawMessage(document))); err != nil {
			got = err.Error()
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", document, got, want)
		}
	}
}

// TestJobHasTheLabelsOfItsPool checks that only the Job has the labels. Controllers of the
// cluster read those of Jobs, and some those of their own pods.
func TestJobHasTheLabelsOfItsPool(t *testing.T) {
	t.Parallel()
	spec := example()
	const key, queue = "kueue.x-k8s.io/queue-name", "team-a"
	spec.Settings = &platform.KubernetesSettings{Labels: map[string]string{key: queue}}
	job, err := jobFor(Config{Orchestrator: "test"}, "runs", spec, "the-secret")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := jobFor(Config{Orchestrator: "test"}, "runs", example(), "the-secret")
	if err != nil {
		t.Fatal(err)
	}
	want := maps.Clone(plain.Labels)
	want[key] = queue
	if diff := cmp.Diff(want, job.Labels); diff != "" {
		t.Errorf("labels of the Job: want -, got +\n%s", diff)
	}
	if diff := cmp.Diff(plain.Spec.Template, job.Spec.Template); diff != "" {
		t.Errorf("want the same pod: -, +\n%s", diff)
	}
	if diff := cmp.Diff(plain.Labels, secretFor(job, spec.Env).Labels); diff != "" {
		t.Errorf("labels of the Secret: want -, got +\n%s", diff)
	}
}

func TestLabelsAreValid(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 63)
	for _, value := range []string{"nightly", "nightly:20250101T000000Z", "a-", long, long + "b", "ä", "::"} {
		got := label(value)
		if !labelValue.Matches(got) || (labelValue.Matches(value) && got != value) {
			t.Errorf("%q: got label %q, want a valid one", value, got)
		}
	}
	if label("a:b") == label("a-b") || label("a:b") == label("a/b") {
		t.Error("got the same label for different values")
	}
}

func TestPoolChoosesWhatDoesNotReachTheNode(t *testing.T) {
	t.Parallel()
	for document, want := range map[string][]string{
		`{"serviceAccountName": "reports", "nodeSelector": {"disk": "ssd"}, "containers": [{"name": "a"}]}`: nil,
		`{"nodeSelektor": {}}`:                   {"settings.podDefaults"},
		`{"containers": [{}, {}]}`:               {"settings.podDefaults.containers"},
		`{"terminationGracePeriodSeconds": "1"}`: {"settings.podDefaults"},
		`{"hostNetwork": true, "hostPID": true, "volumes": [{"name": "v", "hostPath": {"path": "/"}}], "containers": [{"name": "a", "securityContext": {"privileged": true}}]}`: {
			"settings.podDefaults.volumes.0.hostPath", "settings.podDefaults.containers.0.securityContext.privileged",
			"settings.podDefaults.hostNetwork", "settings.podDefaults.hostPID",
		},
	} {
		var got []string
		for _, f := range CheckPodDefaults(json.RawMessage(document)) {
			got = append(got, f.Field)
			if f.Code != fault.Unprocessable || !strings.HasPrefix(f.Message, f.Field+": ") {
				t.Errorf("%s: got %v, want Unprocessable with the field", document, f)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got faults of %v, want %v", document, got, want)
		}
	}
}
