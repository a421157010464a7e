package command_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/functions/webhooks"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/delivery"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

func TestEventsReplay(t *testing.T) {
	t.Parallel()
	parts := apitest.NewParts(t)
	hooks := apitest.NewWebhooks(t, parts)
	hooks.Publish(t)
	stage := apitest.New(t, parts, func(*app.System) []httpkit.Route {
		return append(webhooks.Routes(hooks.Webhooks), webhooks.ReplayRoutes(delivery.NewReplays(hooks.Webhooks, true))...)
	})
	env := map[string]string{"SORTIE_URL": stage.URL}
	hook := strings.Fields(sortie(t, env, "", "webhooks", "create", "http://127.0.0.1:1/").stdout)[0]
	for _, step := range []struct {
		args   string
		code   int
		stdout string
		stderr string
	}{
		{"--from earliest --webhook " + hook, 0, ": 0 of 2 events are sent\n", ""},
		{"--from earliest --bus --limit 1", 0, ": 0 of 1 events are sent\n", "continue with --from "},
		{"--from earliest --bus --type policy.updated", 0, ": 0 of 2 events are sent\n", ""},
		{"--from earliest --bus --type job.failed", 2, "", "no event"},
		{"--from earliest --to 2001-01-01T00:00:00Z --bus", 2, "", "no event"},
		{"--from soon --bus", 2, "", "from: malformed"},
		{"--from earliest --webhook whk_1", 4, "", "no such webhook"},
		{"--bus", 2, "", "missing --from"},
		{"--from earliest", 2, "", "want --webhook or --bus"},
		{"--from earliest --bus --webhook x", 2, "", "want --webhook or --bus"},
	} {
		got := sortie(t, env, "", append([]string{"events", "replay"}, strings.Fields(step.args)...)...)
		if got.code != step.code || !strings.HasSuffix(got.stdout, step.stdout) || !strings.Contains(got.stderr, step.stderr) {
			t.Errorf("%s: got %+v, want exit code %d with %q and %q", step.args, got, step.code, step.stdout, step.stderr)
		}
	}
	var ids []string
	for range 2 {
		var r contract.Replay
		got := sortie(t, env, "", "events", "replay", "--from", "earliest", "--bus", "--key", "k", "--json")
		if err := json.Unmarshal([]byte(got.stdout), &r); err != nil || r.Events != 2 {
			t.Fatalf("got %+v, %v, want a replay of two events", got, err)
		}
		ids = append(ids, r.ID)
	}
	if ids[0] != ids[1] {
		t.Errorf("got replays %v under one key, want one", ids)
	}
}
