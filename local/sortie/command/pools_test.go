package command_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/functions/control"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

const europe = `
id: europe
limit: 2
queueLimit: 5
runner: fly
settings: {apps: [app-a, app-b], regions: [ams, fra]}
fallback:
- {pool: default, on: [capacity, throttled], throttledSeconds: 90}
`

func TestPoolFilesAreChecked(t *testing.T) {
	t.Parallel()
	stage := apitest.New(t, apitest.NewParts(t), func(s *app.System) []httpkit.Route { return control.Routes(s.Pools) })
	for text, want := range map[string]string{
		"queueLimit: 1":                            "-:1: id: missing id, want the name of the pool\n  -:1: limit: missing limit, want the number of slots, or 0 for no limit\n",
		"id: 5\nlimit: 1":                          `-:1: id: 5, want a string, such as "5"`,
		"{id: a, limits: 1}":                       "-:1: limits: unknown field, did you mean limit?",
		"{id: a, limit: 1, settings: {socket: 1}}": `-:1: settings.socket: 1, want a string, such as "1"`,
		"{id: a, limit: [1]}":                      "-:1: limit: a list, want an integer",
		"id: [":                                    "-:1: ",
		"id: a":                                    "-:1: limit: missing limit",
		"[a]":                                      "-:1: a list, want an object",
		"id: a\nlimit: 1\nrunner: moon":            `-:3: runner: unknown runner "moon"`,
		"{id: a, limit: 1, runner: process}":       "the deployment has no runner process, want fly",
		"{id: a, limit: 1, runner: fly, settings: {apps: [x]}}": `the app "x"`,
		"id: a\nlimits: 1\nqueueLimit: x\n": "-:2: limits: unknown field, did you mean limit?\n" +
			`  -:3: queueLimit: "x", want an integer`,
		"id: a\nlimit: -1\nrunner: fly\nsettings:\n  apps: [app-a, x]\n  regions:\n  - fra\n  - B\nfallback:\n- pool: moon\n  on: [exit]": "" +
			"-:2: limit: -1 is out of range, want 0 (no limit) to 100000\n" +
			"  -:5: settings.apps.1: the deployment does not offer the app \"x\", want app-a or app-b\n" +
			"  -:8: settings.regions.1: malformed name \"B\", want 1 to 32 lower-case letters, digits and hyphens\n" +
			"  -:11: fallback.0.on.0: unknown or repeated reason \"exit\", want capacity, image or throttled\n",
	} {
		got := sortie(t, map[string]string{"SORTIE_URL": stage.URL}, text, "pools", "apply", "-f", "-")
		if got.code != 2 || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: got exit code %d with %s, want 2 with %s", text, got.code, got.stderr, want)
		}
	}
}

func TestPoolsFromTheCommandLine(t *testing.T) {
	t.Parallel()
	stage := apitest.New(t, apitest.NewParts(t), func(s *app.System) []httpkit.Route { return control.Routes(s.Pools) })
	env := map[string]string{"SORTIE_URL": stage.URL}
	for _, step := range []struct {
		args string
		code int
		want string // in the output, or in the error message
	}{
		{"list", 0, "POOL     HELD  LIMIT  QUEUED  QUEUE LIMIT  STATE\ndefault  0     2      0       no limit     open\n"},
		{"set default --limit 4 --queue-limit 100", 0, "default: open, 0 of 4 slots held, 0 queued of 100\n"},
		{"set default --limit 5", 0, "default: open, 0 of 5 slots held, 0 queued of 100\n"},
		{"set default", 2, "want --limit, --queue-limit or both"},
		{"set reports --queue-limit 3", 2, "--limit: missing"},
		{"set reports --limit 1 --queue-limit 3", 0, "reports: open, 0 of 1 slots held, 0 queued of 3\n"},
		{"set reports --limit -1", 2, "limit: -1 is out of range"},
		{"drain reports --deadline 10m", 0, "reports: draining until 2026-01-02 03:14:05 UTC, "},
		{"drain reports --deadline 500ms", 2, "want whole seconds"},
		{"drain reports", 0, "reports: draining, "},
		{"show reports", 0, "reports: draining\nslots: 0 of 1 held, 0 with a machine\nqueue: 0 of 3\ndrain: drained, 0 runs and 0 warm machines remain\nversion 3, of 2026-01-02 03:04:05 UTC, by "},
		{"resume reports", 0, "reports: open, "},
		{"delete default", 2, "cannot be deleted"},
		{"delete reports", 0, "deleted reports\n"},
		{"show reports", 4, "no such pool"},
		{"apply -f -", 0, "created europe: open, 2 slots, queue of 5\nrunner: fly\n  apps: app-a, app-b\n  regions: ams, fra\n"},
		{"apply -f -", 0, "unchanged europe: "},
		{"show europe", 0, "europe: open\nrunner: fly\n  apps: app-a, app-b\n  regions: ams, fra\nfallback: default on capacity, throttled for 1m30s\nslots: 0 of 2 held"},
		{"set europe --limit 3", 0, "europe: open, 0 of 3 slots held"},
		{"show europe", 0, "\n  regions: ams, fra\n"},
		{"apply -f -", 0, "changed europe: "},
		{"delete europe", 0, "deleted europe"},
	} {
		got := sortie(t, env, europe, append([]string{"pools"}, strings.Fields(step.args)...)...)
		if got.code != step.code || !strings.Contains(got.stdout+got.stderr, step.want) {
			t.Errorf("pools %s: got exit code %d with\n%s%s\nwant %d with\n%s", step.args, got.code, got.stdout, got.stderr, step.code, step.want)
		}
	}
	var list contract.PoolList
	got := sortie(t, env, "", "pools", "list", "--json")
	if err := json.Unmarshal([]byte(got.stdout), &list); err != nil || len(list.Pools) != 1 || list.Pools[0].Limit != 5 {
		t.Errorf("got %s, %v, want the default pool with limit 5", got.stdout, err)
	}
}
