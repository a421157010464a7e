package stack_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/sortie/template"
)

// TestPlanHasWhatTheStageNeeds reads real templates, as "sortie stage doctor" does.
func TestPlanHasWhatTheStageNeeds(t *testing.T) {
	t.Parallel()
	own := &template.Buckets{Uploads: "${Uploads}", Accepted: "${Accepted}", Endpoint: "https://s3.eu-west-1.${URLSuffix}", Own: true}
	plain := template.Plan{
		Secrets: []template.Secret{{Kind: "clients"}, {Kind: "fly"}, {Kind: "outputs"}}, FlyApps: []string{"arke-mods-export-worker"},
		Buckets: &template.Buckets{Uploads: "arke-exports", Accepted: "arke-exports-accepted"}, Readers: 50, Machines: 16, Rate: 2000, Topic: "sortie-dev-alarms",
	}
	full := template.Plan{
		Secrets: []template.Secret{{Kind: "clients"}, {Kind: "fly"}, {Kind: "kubernetes"}, {Kind: "outputs", Filled: true}, {Kind: "canary"}, {Kind: "traces"}},
		FlyApps: plain.FlyApps, Buckets: own, Reserved: 102, Readers: 50, Machines: 16, Rate: 2000, Topic: plain.Topic, Mail: "watch@example.org",
		Domain: "sortie.example.org", Certificate: "arn:aws:acm:eu-west-1:111122223333:certificate/one",
	}
	minimal := template.Plan{
		Secrets: []template.Secret{{Kind: "clients"}, {Kind: "outputs", Filled: true}}, Readers: 50, Machines: 16, Rate: 2000, Topic: plain.Topic,
		Buckets: &template.Buckets{Uploads: "${Uploads}", Accepted: "${Accepted}", Endpoint: "https://s3.${Region}.${URLSuffix}", Own: true},
	}
	for name, row := range map[string]struct {
		want template.Plan
		made template.Template
	}{"the defaults": {plain, deployed(t)}, "everything": {full, everything(t)}, "without exports": {minimal, synthOnly(t, nil)}} {
		got := template.PlanOf(row.made)
		if got.Buckets != nil { // the names of the stack's own buckets end with a hash
			got.Buckets.Uploads, got.Buckets.Accepted = readable(got.Buckets.Uploads), readable(got.Buckets.Accepted)
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
