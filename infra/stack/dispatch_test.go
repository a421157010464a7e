package stack_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/functions/dispatch"
	"github.com/sortie-dev/sortie/local/sortie/template"
)

// TestDispatcherOutlivesEveryDeadline compares the longest deadline of an inference task with
// the timeouts of the functions that serve and stream it.
func TestDispatcherOutlivesEveryDeadline(t *testing.T) {
	t.Parallel()
	made := deployed(t)
	for name, longest := range map[string]time.Duration{"dispatch": 15 * time.Minute, "inference": 15*time.Minute - time.Second} {
		takes, err := time.ParseDuration(functionOf(t, made, name).Text("Timeout") + "s")
		if err != nil || takes > longest || takes < dispatch.MostWithin+30*time.Second {
			t.Errorf("%s: got a timeout of %s (%v), want %s and at most %s", name, takes, err, dispatch.MostWithin+30*time.Second, longest)
		}
	}
}

// TestDispatcherIsCalled checks that each function that may call a dispatcher has its name and
// the permission, in both kinds of deployment.
func TestDispatcherIsCalled(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]template.Template{":function:sortie-dev-dispatch": deployed(t), ":function:sortie-dev-dispatch:live": everything(t)} {
		var may []string
		for _, s := range statements(made) {
			if slices.Contains(s.actions, "lambda:InvokeFunction") && strings.HasSuffix(s.resources[0], name) {
				may = append(may, s.where)
			}
		}
		var reads []string
		for _, f := range functionsOf(made) {
			if at := functionOf(t, made, f).At("Environment", "Variables", "SORTIE_DISPATCH"); at != nil && strings.HasSuffix(template.Flat(at), name) {
				reads = append(reads, f)
			}
		}
		if want := []string{"control", "dispatch", "inference", "sweep", "tasks"}; !slices.Equal(reads, want) || len(may) != len(want) {
			t.Errorf("%s: got the variable in %v and the permission in %v, want both in %v", name, reads, may, want)
		}
		invoke := named(t, made, "Lambda::EventInvokeConfig", "DispatchInvoke")
		expect(t, invoke, "1", "MaximumRetryAttempts")
		expect(t, invoke, "120", "MaximumEventAgeInSeconds")
	}
}
