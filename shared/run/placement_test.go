package run_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/run"
)

func TestPlacementsOfADeployment(t *testing.T) {
	t.Parallel()
	offer := run.RunnerOffer{
		Runners: run.Runners(), FlyApps: []string{"app-a", "app-b"}, Clusters: []string{"east"}, Sockets: []string{"/run/podman.sock"},
	}
	fly := func(s run.FlySettings) run.Placement { return run.Placement{Runner: run.RunnerFly, Fly: &s} }
	kubernetes := func(s run.KubernetesSettings) run.Placement {
		return run.Placement{Runner: run.RunnerKubernetes, Kubernetes: &s}
	}
	container := func(s run.ContainerSettings) run.Placement {
		return run.Placement{Runner: run.RunnerContainer, Container: &s}
	}
	for _, valid := range []run.Placement{
		{},
		{Runner: run.RunnerProcess},
		fly(run.FlySettings{}), fly(run.FlySettings{Apps: []string{"app-b", "app-a"}, Regions: []string{"ams", "fra"}}),
		kubernetes(run.KubernetesSettings{Cluster: "east", Namespace: "jobs", PodDefaults: json.RawMessage(` {"a": 1}`)}),
		container(run.ContainerSettings{Socket: "/run/podman.sock", Network: "sortie_net"}),
	} {
		if f := valid.Check(offer); len(f) != 0 {
			t.Errorf("%+v: got %v, want no fault", valid, f)
		}
	}
	for name, row := range map[string]struct {
		where run.Placement
		code  fault.Code
		field string
	}{
		"unknown runner":        {run.Placement{Runner: "moon"}, fault.InvalidRequest, "runner"},
		"malformed app":         {fly(run.FlySettings{Apps: []string{"app-a", "a/b"}}), fault.InvalidRequest, "settings.apps.1"},
		"app twice":             {fly(run.FlySettings{Apps: []string{"app-a", "app-a"}}), fault.InvalidRequest, "settings.apps.1"},
		"app of others":         {fly(run.FlySettings{Apps: []string{"app-c"}}), fault.Unprocessable, "settings.apps.0"},
		"malformed region":      {fly(run.FlySettings{Regions: []string{"A"}}), fault.InvalidRequest, "settings.regions.0"},
		"many regions":          {fly(run.FlySettings{Regions: strings.Split(strings.Repeat("a,", 101), ",")}), fault.InvalidRequest, "settings.regions"},
		"label without domain":  {kubernetes(run.KubernetesSettings{Labels: map[string]string{"job-id": "a"}}), fault.InvalidRequest, "settings.labels.job-id"},
		"label of Sortie":       {kubernetes(run.KubernetesSettings{Labels: map[string]string{"sortie/orchestrator": "a"}}), fault.InvalidRequest, "settings.labels.sortie/orchestrator"},
		"label of the cluster":  {kubernetes(run.KubernetesSettings{Labels: map[string]string{"batch.kubernetes.io/a": "a"}}), fault.InvalidRequest, "settings.labels.batch.kubernetes.io/a"},
		"malformed label":       {kubernetes(run.KubernetesSettings{Labels: map[string]string{"a..b/c": "a"}}), fault.InvalidRequest, "settings.labels.a..b/c"},
		"long label":            {kubernetes(run.KubernetesSettings{Labels: map[string]string{"a.b/c": strings.Repeat("a", 64)}}), fault.InvalidRequest, "settings.labels.a.b/c"},
		"unknown cluster":       {kubernetes(run.KubernetesSettings{Cluster: "west"}), fault.Unprocessable, "settings.cluster"},
		"malformed namespace":   {kubernetes(run.KubernetesSettings{Namespace: "a-"}), fault.InvalidRequest, "settings.namespace"},
		"pod that is no object": {kubernetes(run.KubernetesSettings{PodDefaults: json.RawMessage("[]")}), fault.InvalidRequest, "settings.podDefaults"},
		"malformed pod":         {kubernetes(run.KubernetesSettings{PodDefaults: json.RawMessage("{")}), fault.InvalidRequest, "settings.podDefaults"},
		"empty pod":             {kubernetes(run.KubernetesSettings{PodDefaults: json.RawMessage{}}), fault.InvalidRequest, "settings.podDefaults"},
		"large pod":             {kubernetes(run.KubernetesSettings{PodDefaults: json.RawMessage(`{"a":"` + strings.Repeat("a", 32<<10) + `"}`)}), fault.InvalidRequest, "settings.podDefaults"},
		"relative socket":       {container(run.ContainerSettings{Socket: "podman.sock"}), fault.InvalidRequest, "settings.socket"},
		"socket with ..":        {container(run.ContainerSettings{Socket: "/run/../podman.sock"}), fault.InvalidRequest, "settings.socket"},
		"unknown socket":        {container(run.ContainerSettings{Socket: "/run/docker.sock"}), fault.Unprocessable, "settings.socket"},
		"malformed network":     {container(run.ContainerSettings{Network: "container:a"}), fault.InvalidRequest, "settings.network"},
	} {
		if f := row.where.Check(offer); len(f) != 1 || f[0].Code != row.code || f[0].Field != row.field {
			t.Errorf("%s: got %v, want %s of %s", name, f, row.code, row.field)
		}
	}
	if f := fly(run.FlySettings{Apps: []string{"app-c", "app-a", "app-d"}, Regions: []string{"A"}}).Check(offer); len(f) != 3 {
		t.Errorf("got %v, want the faults of two apps and a region", f)
	}
	if f := container(run.ContainerSettings{Socket: "a", Network: "container:a"}).Check(offer); len(f) != 2 {
		t.Errorf("got %v, want the faults of both settings", f)
	}
	few := run.RunnerOffer{Runners: []string{run.RunnerFly, run.RunnerKubernetes}}
	f := run.Placement{Runner: run.RunnerProcess}.Check(few)
	if len(f) != 1 || f[0].Code != fault.RunnerNotAllowed || f[0].Field != "runner" || !strings.Contains(f[0].Message, "want fly or kubernetes") {
		t.Errorf("got %v, want RunnerNotAllowed with the runners", f)
	}
	if got := few.Default(); got != run.RunnerFly {
		t.Errorf("got default %q, want fly", got)
	}
}

// TestPlacementIsFixedByTheFirstCall changes the placement of the pool between two create
// calls.
func TestPlacementIsFixedByTheFirstCall(t *testing.T) {
	t.Parallel()
	store := func(r run.Run, runner, token string) run.Run {
		return decided(t, r, run.TokenStored{
			Step: run.StepContainerCreating, Generation: r.Wait.Generation, Token: token, Placement: run.Placement{Runner: runner},
		})
	}
	want := func(when string, r run.Run, runner string) {
		t.Helper()
		if got := r.Attempt.Place().Runner; got != runner {
			t.Errorf("%s: got runner %q, want %q", when, got, runner)
		}
	}
	r, _ := after(t, run.Admitted{Pool: "default"})
	creating := r
	r = store(r, "fly", "a")
	want("first call", r, "fly")
	r = store(r, "process", "b")
	want("call while another may be in flight", r, "fly")
	refused := decided(t, r, run.StartRefused{Attempt: 1, Fault: fault.New(fault.Capacity, "full")})
	want("call after one without an answer", store(refused, "process", "c"), "fly")

	r = store(creating, "fly", "a")
	r = decided(t, r, run.StartRefused{Attempt: 1, Fault: fault.New(fault.Capacity, "full")})
	want("call after a refusal", store(r, "process", "b"), "process")
}
