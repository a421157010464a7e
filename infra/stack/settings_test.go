package stack_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/infra/stack"
	"github.com/sortie-dev/sortie/shared/base/setting"
)

func sortedKeys[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }

// TestWithoutASource reads no settings at all. Such a stage exports nothing, has its own
// buckets, and has no Fly apps.
func TestWithoutASource(t *testing.T) {
	t.Parallel()
	s, err := stack.ReadSettings(only(nil))
	if err != nil || s.Outputs != stack.S3 || len(s.FlyApps) != 0 {
		t.Errorf("got %+v, %v, want buckets of the stack and no apps", s, err)
	}
	s, err = stack.ReadSettings(only(map[string]any{"outputs": "r2", "flyApps": "runs"}))
	if err != nil || s.Outputs != stack.R2 || !slices.Equal(s.FlyApps, []string{"runs"}) {
		t.Errorf("got %+v, %v, want what is given", s, err)
	}
	_, err = stack.ReadSettings(only(map[string]any{"canary": "01K9XVBAQZF9EHDRXGBEADTZYY"}))
	if err == nil || err.Error() != "canary: requires settings.SOURCE_API_URL, the entity API that has the entity" {
		t.Errorf("got %v, want that a canary needs an entity API", err)
	}
}

// TestWorkersMayAllSendHeartbeats checks that a limit of requests that the heartbeats of all
// machines would exceed is refused.
func TestWorkersMayAllSendHeartbeats(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		values map[string]any
		want   string
	}{
		{map[string]any{"SORTIE_MAX_MACHINES": 60_000}, ""},
		{map[string]any{"SORTIE_MAX_MACHINES": 60_001}, "want 2001 or more"},
		{map[string]any{"SORTIE_MAX_MACHINES": 60_001, "workerRate": 2001}, ""},
		{map[string]any{"SORTIE_MAX_MACHINES": 60_001, "SORTIE_HEARTBEAT_INTERVAL": "60s"}, ""},
		{map[string]any{"SORTIE_MAX_MACHINES": 100, "SORTIE_HEARTBEAT_INTERVAL": "1s", "workerRate": 99}, "want 100 or more"},
	} {
		_, err := stack.ReadSettings(only(row.values))
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.HasPrefix(err.Error(), "workerRate: ") || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%v: got %v, want %q", row.values, err, row.want)
		}
	}
}

// TestContextIsReadAsTheCDKDoes reads cdk.json and arguments of the CDK's command line.
func TestContextIsReadAsTheCDKDoes(t *testing.T) {
	t.Parallel()
	context, err := stack.FromContext([]byte(`{"app": "x", "context": {"logDays": 90, "stages": {"prod": {"flyApps": ["a"]}}}}`),
		[]string{"--profile", "-c", "stage=prod", "--context=version=v1=2", "--verbose", "--context", "arch=amd64", "-c"})
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{"stage": "prod", "version": "v1=2", "arch": "amd64", "logDays": 90.0} {
		if got, ok := context(key); !ok || got != want {
			t.Errorf("%s: got %v, want %v", key, got, want)
		}
	}
	if _, ok := context("profile"); ok {
		t.Error("got a value of another flag")
	}
	if _, err := stack.FromContext([]byte(`{`), nil); err == nil || !strings.HasPrefix(err.Error(), "cdk.json: ") {
		t.Errorf("got %v, want a problem of cdk.json", err)
	}
}

func TestDefaultsOfAStageThatExports(t *testing.T) {
	t.Parallel()
	s, err := stack.ReadSettings(given(nil))
	if err != nil {
		t.Fatal(err)
	}
	if s.Stage != "dev" || s.Arch != "arm64" || !s.Retain || s.Outputs != stack.R2 || !slices.Equal(s.FlyApps, []string{"arke-mods-export-worker"}) || s.LocalStack != "" || len(s.Origins) != 0 || !s.Stream {
		t.Errorf("got defaults %+v", s)
	}
	want := map[string]string{"SORTIE_REDIRECT_OVER": "8388608", "SOURCE_API_URL": "https://entities.example.org"}
	if diff := cmp.Diff(want, s.Service); diff != "" {
		t.Errorf("service settings (-want +got):\n%s", diff)
	}
}

// TestBufferedDownloadFitsInAnAnswer checks that larger outputs are redirected. A response of
// Lambda has at most 6 MB of JSON.
func TestBufferedDownloadFitsInAnAnswer(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{"": "3145728", "1000000": "1000000"} {
		s, err := stack.ReadSettings(given(map[string]any{"stream": false, "SORTIE_REDIRECT_OVER": value}))
		if err != nil || s.Service["SORTIE_REDIRECT_OVER"] != want {
			t.Errorf("%q: got a redirect over %s bytes (%v), want %s", value, s.Service["SORTIE_REDIRECT_OVER"], err, want)
		}
	}
}

func TestEveryProblemIsNamed(t *testing.T) {
	t.Parallel()
	_, err := stack.ReadSettings(given(map[string]any{
		"stage": "Prod!", "account": "12", "region": "Frankfurt", "domain": "sortie.example.org", "alarmEmail": "not-an-address",
		"logDays": 8, "outputs": "gcs", "outputsEndpoint": "ftp://x", "outputsKeys": "1,2,1", "retain": "maybe", "origins": "pages.example.org", "version": "v 1", "arch": "mips",
		"localstack": "here", "signingKeys": "a b", "memory": "sweep=64,unknown=128", "reserved": "status=-1",
		"clientRate": "many", "workerRate": 0, "stream": 2, "flyUrl": "machines", "kubernetesCluster": "East", "kubernetesNamespaces": "a,B", "SOURCE_API_URL": "entities",
		"settings": `{"SORTIE_MAX_MACHINE": "1", "SORTIE_MAX_MACHINES": "-1", "SORTIE_PUBLIC_URL": "https://x.example.org", "SORTIE_COLOUR": "red"}`,
	}))
	if err == nil {
		t.Fatal("got no error")
	}
	for _, name := range []string{
		"stage: ", "account: ", "region: ", "domain, certificate: ", "alarmEmail: ", "logDays: ", "outputs: ", "outputsEndpoint: ",
		`outputsKeys: "1" occurs twice`, "stages.Prod!: missing", "retain: ", "origins: ", "version: ", "arch: ", "localstack: ", "signingKeys: ", "memory: ", `unknown function "unknown"`, "reserved: ",
		"clientRate: ", "workerRate: ", "stream: ", "flyUrl: ", "kubernetesCluster: ", "kubernetesNamespaces: ", "SOURCE_API_URL: ", "SORTIE_MAX_MACHINES: ",
		"SORTIE_PUBLIC_URL: ", "SORTIE_COLOUR: unknown", "SORTIE_MAX_MACHINE: unknown key, did you mean SORTIE_MAX_MACHINES?",
	} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %s in it", err, name)
		}
	}
}

// TestStageOfAClusterIsALabel checks that a stage with which the functions could not label Jobs
// is refused.
func TestStageOfAClusterIsALabel(t *testing.T) {
	t.Parallel()
	for stage, want := range map[string]string{
		"prod": "", "twenty-characters-it": "", "prod-": `"000000000000.ap-southeast-1.prod-"`,
		strings.Repeat("a", 36): "stage: with kubernetesCluster",
	} {
		stages := map[string]any{stage: map[string]any{"settings": map[string]any{"SOURCE_API_URL": "https://entities.example.org"}, "kubernetesCluster": "east"}}
		_, err := stack.ReadSettings(only(map[string]any{"stages": stages, "stage": stage}))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", stage, err, want)
		}
	}
	stages := map[string]any{"prod-": map[string]any{"settings": map[string]any{"SOURCE_API_URL": "https://entities.example.org"}}}
	if _, err := stack.ReadSettings(only(map[string]any{"stages": stages, "stage": "prod-"})); err != nil {
		t.Errorf("without a cluster: got %v, want no problem", err)
	}
}

// TestDomainHasNoPath checks that a domain with a path is refused, because functions would get
// paths with the base path.
func TestDomainHasNoPath(t *testing.T) {
	t.Parallel()
	for _, domain := range []string{"sortie.example.org/", "sortie.example.org/v1", "https://sortie.example.org"} {
		if _, err := stack.ReadSettings(given(map[string]any{"domain": domain})); err == nil || !strings.Contains(err.Error(), "domain: ") {
			t.Errorf("%s: got %v, want a problem of domain", domain, err)
		}
	}
}

func TestStageHasItsOwnValues(t *testing.T) {
	t.Parallel()
	stages := map[string]any{"prod": map[string]any{
		"logDays": float64(90), "signingKeys": []any{"2", "1"}, "reserved": map[string]any{"callback": float64(100)},
		"settings": map[string]any{"SORTIE_MAX_MACHINES": float64(64), "SOURCE_API_URL": "https://entities.example.org"},
	}}
	s, err := stack.ReadSettings(only(map[string]any{"stages": stages, "stage": "prod", "arch": "amd64", "account": "111122223333", "version": "v2"}))
	if err != nil {
		t.Fatal(err)
	}
	if s.LogDays != 90 || !slices.Equal(s.SigningKeys, []string{"2", "1"}) || s.Reserved["callback"] != 100 {
		t.Errorf("got %+v, want the stage's values", s)
	}
	if s.Service["SORTIE_MAX_MACHINES"] != "64" || s.Arch != "amd64" || s.Version != "v2" {
		t.Errorf("got service settings %v and %+v", s.Service, s)
	}
	other, err := stack.ReadSettings(given(map[string]any{"stages": stages}))
	if err != nil || other.LogDays != 30 {
		t.Errorf("other stage: got logDays %d (%v), want 30", other.LogDays, err)
	}
	if _, err := stack.ReadSettings(given(map[string]any{"stages": map[string]any{"dev": map[string]any{"colour": "red"}}})); err == nil {
		t.Error("unknown key: got no error")
	}
}

// only returns a Given that looks up the values of a map.
func only(values map[string]any) stack.Given {
	return func(key string) (any, bool) { value, ok := values[key]; return value, ok }
}

// TestStageHasItsSettingsInOnePlace checks that a stage other than dev needs an entry. A
// setting outside the entry is refused, because the next deployment would lose it.
func TestStageHasItsSettingsInOnePlace(t *testing.T) {
	t.Parallel()
	stages := map[string]any{"prod": map[string]any{"settings": map[string]any{"SOURCE_API_URL": "https://entities.example.org"}}}
	passing := []string{"stage", "account", "region", "arch", "version", "localstack"}
	keys := append(setting.Names(stack.Documented()), "settings", "SOURCE_API_URL", "SORTIE_MAX_MACHINES")
	for _, key := range keys {
		if slices.Contains(passing, key) {
			continue
		}
		_, err := stack.ReadSettings(only(map[string]any{"stages": stages, "stage": "prod", key: "1"}))
		if want := key + ": given by -c or the environment, want it in cdk.json under stages.prod"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", key, err, want)
		}
	}
	for _, values := range []map[string]any{
		{"stage": "staging", "stages": stages},
		{"stage": "prod", "SOURCE_API_URL": "https://entities.example.org"},
		{"stage": "local", "localstack": true, "SOURCE_API_URL": "https://entities.example.org"},
	} {
		if _, err := stack.ReadSettings(only(values)); err == nil || !strings.Contains(err.Error(), "stages."+values["stage"].(string)+": missing in cdk.json") {
			t.Errorf("%v: got %v, want a missing entry", values, err)
		}
	}
	for _, stage := range []string{"dev", "local"} {
		values := map[string]any{"stage": stage, "stages": map[string]any{"local": map[string]any{}}, "localstack": stage == "local", "logDays": 3, "SOURCE_API_URL": "https://entities.example.org"}
		if s, err := stack.ReadSettings(only(values)); err != nil || s.LogDays != 3 {
			t.Errorf("%s: got logDays %d, %v, want 3", stage, s.LogDays, err)
		}
	}
}

func TestEnvironmentHasKeys(t *testing.T) {
	t.Parallel()
	values := map[string]string{
		"STACK_LOG_DAYS": "14", "CDK_DEFAULT_REGION": "eu-west-1", "STACK_ALARM_EMAIL": "watch@example.org", "STACK_STAGE": "dev",
		"SORTIE_MAX_MACHINES": "3", "SORTIE_PUBLIC_URL": "https://other.example.org", "SOURCE_API_URL": "https://entities.example.org",
	}
	environment := stack.FromEnvironment(func(name string) (string, bool) { value, ok := values[name]; return value, ok })
	s, err := stack.ReadSettings(stack.FirstOf(func(key string) (any, bool) { return "8", key == "clientRate" }, environment))
	if err != nil {
		t.Fatal(err)
	}
	if s.LogDays != 14 || s.Region != "eu-west-1" || s.AlarmEmail != "watch@example.org" || s.ClientRate != 8 {
		t.Errorf("got %+v, want the environment's values", s)
	}
	if s.Service["SORTIE_MAX_MACHINES"] != "3" || s.Service["SORTIE_PUBLIC_URL"] != "" {
		t.Errorf("got service settings %v", s.Service)
	}
}

func TestLocalStackIsTrueFalseOrURL(t *testing.T) {
	t.Parallel()
	for value, want := range map[any]string{
		"true": "http://127.0.0.1:4566", true: "http://127.0.0.1:4566", "http://127.0.0.1:4600/": "http://127.0.0.1:4600", "false": "",
	} {
		s, err := stack.ReadSettings(given(map[string]any{"localstack": value}))
		if err != nil || s.LocalStack != want {
			t.Errorf("%v: got %q (%v), want %q", value, s.LocalStack, err, want)
		}
	}
}
