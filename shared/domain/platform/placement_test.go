package platform_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/base/encoded"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// TestRecordOfAPlacement writes placements as earlier releases wrote them, and reads them again.
func TestRecordOfAPlacement(t *testing.T) {
	t.Parallel()
	for text, where := range map[string]platform.Placement{
		`{}`:                   {},
		`{"runner":"process"}`: {Runner: platform.RunnerProcess},
		`{"runner":"fly","fly":{"apps":["a"],"regions":["ams"]}}`: {
			Runner: platform.RunnerFly, Settings: &platform.FlySettings{Apps: []string{"a"}, Regions: []string{"ams"}},
		},
		`{"runner":"kubernetes","kubernetes":{"namespace":"jobs","podDefaults":{"a":"<"}}}`: {
			Runner: platform.RunnerKubernetes, Settings: &platform.KubernetesSettings{Namespace: "jobs", PodDefaults: json.RawMessage(`{"a":"<"}`)},
		},
		`{"runner":"container","container":{}}`: {Runner: platform.RunnerContainer, Settings: &platform.ContainerSettings{}},
	} {
		if got, err := encoded.Append(nil, &where); err != nil || string(got) != text {
			t.Errorf("got %s, %v, want %s", got, err, text)
		}
		var read platform.Placement
		if err := json.Unmarshal([]byte(text), &read); err != nil || !read.Equal(where) {
			t.Errorf("%s: got %+v, %v, want %+v", text, read, err, where)
		}
	}
	var read platform.Placement
	for _, text := range []string{`{"runner":1}`, `{"runner":"fly","fly":[]}`} {
		if err := json.Unmarshal([]byte(text), &read); err == nil {
			t.Errorf("%s: got %+v, want an error", text, read)
		}
	}
}

func TestPlacementsOfADeployment(t *testing.T) {
	t.Parallel()
	offer := platform.RunnerOffer{
		Runners: platform.Runners(), FlyApps: []string{"app-a", "app-b"}, Clusters: []string{"east"}, Sockets: []string{"/run/podman.sock"},
	}
	fly := func(s platform.FlySettings) platform.Placement {
		return platform.Placement{Runner: platform.RunnerFly, Settings: &s}
	}
	kubernetes := func(s platform.KubernetesSettings) platform.Placement {
		return platform.Placement{Runner: platform.RunnerKubernetes, Settings: &s}
	}
	container := func(s platform.ContainerSettings) platform.Placement {
		return platform.Placement{Runner: platform.RunnerContainer, Settings: &s}
	}
	for _, valid := range []platform.Placement{
		{},
		{Runner: platform.RunnerProcess},
		fly(platform.FlySettings{}), fly(platform.FlySettings{Apps: []string{"app-b", "app-a"}, Regions: []string{"ams", "fra"}}),
		kubernetes(platform.KubernetesSettings{Cluster: "east", Namespace: "jobs", PodDefaults: json.RawMessage(` {"a": 1}`)}),
		container(platform.ContainerSettings{Socket: "/run/podman.sock", Network: "sortie_net"}),
	} {
		if f := valid.Check(offer); len(f) != 0 {
			t.Errorf("%+v: got %v, want no fault", valid, f)
		}
	}
	for name, row := range map[string]struct {
		where platform.Placement
		code  fault.Code
		field string
	}{
		"unknown runner":        {platform.Placement{Runner: "moon"}, fault.InvalidRequest, "runner"},
		"malformed app":         {fly(platform.FlySettings{Apps: []string{"app-a", "a/b"}}), fault.InvalidRequest, "settings.apps.1"},
		"app twice":             {fly(platform.FlySettings{Apps: []string{"app-a", "app-a"}}), fault.InvalidRequest, "settings.apps.1"},
		"app of others":         {fly(platform.FlySettings{Apps: []string{"app-c"}}), fault.Unprocessable, "settings.apps.0"},
		"malformed region":      {fly(platform.FlySettings{Regions: []string{"A"}}), fault.InvalidRequest, "settings.regions.0"},
		"many regions":          {fly(platform.FlySettings{Regions: strings.Split(strings.Repeat("a,", 101), ",")}), fault.InvalidRequest, "settings.regions"},
		"label without domain":  {kubernetes(platform.KubernetesSettings{Labels: map[string]string{"job-id": "a"}}), fault.InvalidRequest, "settings.labels.job-id"},
		"label of Sortie":       {kubernetes(platform.KubernetesSettings{Labels: map[string]string{"sortie/orchestrator": "a"}}), fault.InvalidRequest, "settings.labels.sortie/orchestrator"},
		"label of the cluster":  {kubernetes(platform.KubernetesSettings{Labels: map[string]string{"batch.kubernetes.io/a": "a"}}), fault.InvalidRequest, "settings.labels.batch.kubernetes.io/a"},
		"malformed label":       {kubernetes(platform.KubernetesSettings{Labels: map[string]string{"a..b/c": "a"}}), fault.InvalidRequest, "settings.labels.a..b/c"},
		"long label":            {kubernetes(platform.KubernetesSettings{Labels: map[string]string{"a.b/c": strings.Repeat("a", 64)}}), fault.InvalidRequest, "settings.labels.a.b/c"},
		"unknown cluster":       {kubernetes(platform.KubernetesSettings{Cluster: "west"}), fault.Unprocessable, "settings.cluster"},
		"malformed namespace":   {kubernetes(platform.KubernetesSettings{Namespace: "a-"}), fault.InvalidRequest, "settings.namespace"},
		"pod that is no object": {kubernetes(platform.KubernetesSettings{PodDefaults: json.RawMessage("[]")}), fault.InvalidRequest, "settings.podDefaults"},
		"malformed pod":         {kubernetes(platform.KubernetesSettings{PodDefaults: json.RawMessage("{")}), fault.InvalidRequest, "settings.podDefaults"},
		"empty pod":             {kubernetes(platform.KubernetesSettings{PodDefaults: json.RawMessage{}}), fault.InvalidRequest, "settings.podDefaults"},
		"large pod":             {kubernetes(platform.KubernetesSettings{PodDefaults: json.RawMessage(`{"a":"` + strings.Repeat("a", 32<<10) + `"}`)}), fault.InvalidRequest, "settings.podDefaults"},
		"relative socket":       {container(platform.ContainerSettings{Socket: "podman.sock"}), fault.InvalidRequest, "settings.socket"},
		"socket with ..":        {container(platform.ContainerSettings{Socket: "/run/../podman.sock"}), fault.InvalidRequest, "settings.socket"},
		"unknown socket":        {container(platform.ContainerSettings{Socket: "/run/docker.sock"}), fault.Unprocessable, "settings.socket"},
		"malformed network":     {container(platform.ContainerSettings{Network: "container:a"}), fault.InvalidRequest, "settings.network"},
	} {
		if f := row.where.Check(offer); len(f) != 1 || f[0].Code != row.code || f[0].Field != row.field {
			t.Errorf("%s: got %v, want %s of %s", name, f, row.code, row.field)
		}
	}
	if f := fly(platform.FlySettings{Apps: []string{"app-c", "app-a", "app-d"}, Regions: []string{"A"}}).Check(offer); len(f) != 3 {
		t.Errorf("got %v, want the faults of two apps and a region", f)
	}
	if f := container(platform.ContainerSettings{Socket: "a", Network: "container:a"}).Check(offer); len(f) != 2 {
		t.Errorf("got %v, want the faults of both settings", f)
	}
	few := platform.RunnerOffer{Runners: []string{platform.RunnerFly, platform.RunnerKubernetes}}
	f := platform.Placement{Runner: platform.RunnerProcess}.Check(few)
	if len(f) != 1 || f[0].Code != fault.RunnerNotAllowed || f[0].Field != "runner" || !strings.Contains(f[0].Message, "want fly or kubernetes") {
		t.Errorf("got %v, want RunnerNotAllowed with the runners", f)
	}
	if got := few.Default(); got != platform.RunnerFly {
		t.Errorf("got default %q, want fly", got)
	}
}
