package stack_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/sortie-dev/sortie/infra/stack"
	"github.com/sortie-dev/sortie/local/sortie/stage"
	"github.com/sortie-dev/sortie/local/sortie/template"
	"github.com/sortie-dev/sortie/shared/base/setting"
)

const restored = "arn:aws:dynamodb:eu-west-1:111122223333:table/sortie-restored/stream/2026-03-01T08:00:00.000"

// complete returns a value for each setting that adds a lasting resource.
func complete() map[string]any {
	return map[string]any{
		"outputs": "s3", "domain": "sortie.example.org", "certificate": "arn:aws:acm:eu-west-1:111122223333:certificate/one",
		"alarmEmail": "watch@example.org", "origins": "https://pages.example.org", "signingKeys": "2,1", "outputsKeys": "1,2",
		"gradual": true, "firewall": true, "clientLimit": 3000, "canary": "01K9XVBAQZF9EHDRXGBEADTZYY", "backup": true, "budget": 50,
		"traceHeaders": true, "settings": map[string]any{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://otlp.example.org"},
		"logDays": 90, "flyApps": "one,two", "kubernetesCluster": "east", "kubernetesNamespaces": "runs,more", "account": "111122223333", "region": "eu-west-1",
	}
}

// without returns the settings with the changes. A nil value removes a setting.
func without(settings, changes map[string]any) map[string]any {
	changed := maps.Clone(settings)
	maps.Copy(changed, changes)
	maps.DeleteFunc(changed, func(_ string, value any) bool { return value == nil })
	return changed
}

// words returns the words of what is removed if the template after is deployed over before.
func words(before, after template.Template) []string {
	found := map[string]bool{}
	for _, r := range stage.Removals(before, after) {
		found[r.Word] = true
	}
	return sortedKeys(found)
}

// TestLostSettingNeedsAWord deploys without some settings over a stack with all of them, and the
// reverse. The settings of a row have different words. A template takes seconds, so there is not
// one for each setting.
func TestLostSettingNeedsAWord(t *testing.T) {
	t.Parallel()
	all := synth(t, complete())
	for name, row := range map[string]struct {
		lost map[string]any
		// want are the words if the settings are removed, back those if they are added.
		want, back []string
	}{
		"buckets, keys, firewall and apps": {
			map[string]any{"outputs": nil, "outputsKeys": nil, "signingKeys": nil, "firewall": nil, "clientLimit": nil, "flyApps": "two"},
			[]string{"firewall", "flyApps", "outputs", "outputsKeys", "signingKeys"},
			[]string{"outputs"},
		},
		"domain and some of the keys": {
			map[string]any{"domain": nil, "certificate": nil, "signingKeys": "2", "outputsKeys": "2", "backup": nil, "budget": nil, "kubernetesNamespaces": "more"},
			[]string{"backup", "budget", "domain", "kubernetes", "outputsKeys", "signingKeys"},
			[]string{"address"},
		},
		"another domain, alarms and traces": {
			map[string]any{"domain": "other.example.org", "alarmEmail": nil, "budget": nil, "gradual": nil, "traceHeaders": nil, "origins": nil},
			[]string{"alarmEmail", "budget", "domain", "gradual", "origins", "secrets"},
			[]string{"domain"},
		},
		"another address of alarms, logs and a cluster": {
			map[string]any{"alarmEmail": "other@example.org", "logDays": nil, "kubernetesCluster": nil},
			[]string{"alarmEmail", "budget", "kubernetes", "logs", "secrets"},
			[]string{"alarmEmail", "budget"},
		},
		"retain": {map[string]any{"retain": false}, []string{"retain"}, nil},
		"canary and a restored table": {
			map[string]any{"canary": nil, "tableStream": restored},
			[]string{"alarms", "gradual", "logs", "schedules", "secrets", "table"},
			[]string{"tableStream"},
		},
		"harmless ones": {map[string]any{
			"signingKeys": "1,2", "outputsKeys": "2,1", "clientRate": 7, "workerRate": 8, "readers": 9, "tracing": true, "memory": "sweep=512",
			"reserved": "callback=2", "version": "v9", "stream": false,
		}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			less := synth(t, without(complete(), row.lost))
			if got := words(all, less); !slices.Equal(got, row.want) {
				t.Errorf("lost: got %v, want %v: %v", got, row.want, stage.Removals(all, less))
			}
			if got := words(less, all); !slices.Equal(got, row.back) {
				t.Errorf("added: got %v, want %v: %v", got, row.back, stage.Removals(less, all))
			}
		})
	}
}

// TestEverySettingIsCompared checks that each setting is part of the comparison above or
// removes nothing.
func TestEverySettingIsCompared(t *testing.T) {
	t.Parallel()
	harmless := []string{
		"stage", "account", "region", "arch", "localstack", "clientRate", "workerRate", "stream", "readers", "version", "tracing", "memory", "reserved",
		"tableStream", "retain", // compared with another value than that of complete
		"outputsEndpoint", "uploadsBucket", "acceptedBucket", "flyUrl", // compared below
	}
	for _, name := range setting.Names(stack.Documented()) {
		if _, compared := complete()[name]; !compared && !slices.Contains(harmless, name) {
			t.Errorf("%s: its loss is not compared", name)
		}
	}
	r2 := map[string]any{"outputsEndpoint": "https://r2.example.org", "uploadsBucket": "up-one", "acceptedBucket": "down-one", "flyUrl": "https://machines.example.org"}
	before := synth(t, r2)
	for name, word := range map[string]string{"outputsEndpoint": "outputs", "uploadsBucket": "outputs", "acceptedBucket": "outputs", "flyUrl": "flyApps"} {
		if got := words(before, synth(t, without(r2, map[string]any{name: nil}))); !slices.Equal(got, []string{word}) {
			t.Errorf("%s: got %v, want %s", name, got, word)
		}
	}
}

// TestUpgradeTakesNothingAway deploys this release over the previous one, with the same
// settings. testdata/previous.json contains the lasting resources of the previous template.
func TestUpgradeTakesNothingAway(t *testing.T) {
	t.Parallel()
	previous, err := template.Read("testdata/previous.json")
	if err != nil {
		t.Fatal(err)
	}
	if found := stage.Removals(previous, everything(t)); len(found) > 0 {
		t.Errorf("got %v, want nothing", found)
	}
	if n := len(previous.Resources); n < 40 {
		t.Errorf("got %d resources of the previous release, want its lasting ones", n)
	}
}
