package stack_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/sortie/stage/plan"
)

// TestPlanHasWhatTheStageNeeds reads real templates, as "sortie stage doctor" does.
func TestPlanHasWhatTheStageNeeds(t *testing.T) {
	t.Parallel()
	own := &plan.Buckets{Uploads: "${Uploads}", Accepted: "${Accepted}", Endpoint: "https://s3.eu-west-1.${URLSuffix}", Own: true}
	plain := plan.Plan{
		Secrets: []plan.Secret{{Kind: "clients"}, {Kind: "fly"}, {Kind: "outputs"}}, FlyApps: []string{"arke-mods-export-worker"},
		Buckets: &plan.Buckets{Uploads: "arke-exports", Accepted: "arke-exports-accepted"}, Readers: 50, Machines: 16, Rate: 2000, Topic: "sortie-dev-alarms",
	}
	full := plan.Plan{
		Secrets: []plan.Secret{{Kind: "clients"}, {Kind: "fly"}, {Kind: "kubernetes"}, {Kind: "outputs", Filled: true}, {Kind: "canary"}, {Kind: "traces"}},
		FlyApps: plain.FlyApps, Buckets: own, Reserved: 102, Readers: 50, Machines: 16, Rate: 2000, Topic: plain.Topic, Mail: "watch@example.org",
		Domain: "sortie.example.org", Certificate: "arn:aws:acm:eu-west-1:111122223333:certificate/one",
	}
	got := plan.Of(everything(t))
	// The names of the buckets end with a hash.
	got.Buckets.Uploads, got.Buckets.Accepted = readable(got.Buckets.Uploads), readable(got.Buckets.Accepted)
	for name, row := range map[string][2]plan.Plan{"the defaults": {plain, plan.Of(deployed(t))}, "everything": {full, got}} {
		if diff := cmp.Diff(row[0], row[1]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
