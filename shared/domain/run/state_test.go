package run_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

// contractTable is the table of the run-lifecycle contract, row by row, with the transition
// that Sortie adds.
const contractTable = `
PreRun: Pending Cancelled
Pending: ConditionPending ContainerCreating Cancelled Failed
ConditionPending: ConditionRunning Cancelled Failed
ConditionRunning: ActionPending ContainerCreating Cancelled Failed
ActionPending: ActionRunning Cancelled Failed
ActionRunning: ContainerCreating Completed Cancelled Failed
ContainerCreating: Running Cancelled Failed Terminating
Running: Terminating Cancelled Failed
Terminating: Completed Failed Retrying Cancelled
Retrying: Pending Failed Cancelled
Completed:
Failed:
Cancelled:
Orphaned:
`

func TestEveryPairOfStates(t *testing.T) {
	t.Parallel()
	allowed := map[run.State][]string{}
	for line := range strings.Lines(strings.TrimSpace(contractTable)) {
		from, next, _ := strings.Cut(strings.TrimSpace(line), ":")
		allowed[run.State(from)] = strings.Fields(next)
	}
	if len(allowed) != 14 || len(run.States()) != 14 {
		t.Fatalf("got %d and %d states, want 14", len(allowed), len(run.States()))
	}
	for _, from := range run.States() {
		for _, to := range run.States() {
			want := slices.Contains(allowed[from], string(to)) ||
				to == run.Orphaned && len(allowed[from]) > 0
			if got := from.CanBecome(to); got != want {
				t.Errorf("%s -> %s: got CanBecome %v, want %v", from, to, got, want)
			}
		}
		if got, want := from.Terminal(), len(allowed[from]) == 0; got != want {
			t.Errorf("%s: got Terminal %v, want %v", from, got, want)
		}
	}
	if run.State("Zombie").Valid() || run.State("").Terminal() {
		t.Error("unknown state: got valid or terminal")
	}
}

func TestNamesForOtherSystems(t *testing.T) {
	t.Parallel()
	refs := []run.Ref{
		{Tenant: "local", ID: "export_mods_1704857234567_a3f8c2d1"},
		{Tenant: "local", ID: "export-mods-1704857234567-a3f8c2d1"},
		{Tenant: "other", ID: "export_mods_1704857234567_a3f8c2d1"},
		{Tenant: "local", ID: "nightly:2026-11-21T02:00:00Z"},
		{Tenant: "local", ID: strings.Repeat("x", 300)},
		{Tenant: "local", ID: strings.Repeat("x", 301)},
		{Tenant: "local", ID: "---"},
		{Tenant: "local", ID: "Zürich"},
	}
	seen := map[string]run.Ref{}
	for _, ref := range refs {
		for attempt := range 3 {
			for _, name := range []string{run.MachineName(ref, attempt+1), run.ExecutionName(ref, attempt+1)} {
				if other, taken := seen[name]; taken {
					t.Errorf("%v and %v: got the same name %s", ref, other, name)
				}
				seen[name] = ref
				if len(name) > 63 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" ||
					strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-") {
					t.Errorf("got %q, want a DNS-1123 label", name)
				}
			}
		}
	}
	if name := run.MachineName(refs[0], 2); !strings.HasPrefix(name, "export-mods-1704857234567-a3f8c2d1-") || !strings.HasSuffix(name, "-a2") {
		t.Errorf("got %q, want the run's id in it", name)
	}
}
