package stack_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/sortie/template"
)

// TestPartitionIsTheRegions checks that no ARN and no host name of a template is in the
// partition aws if the region is in another partition.
func TestPartitionIsTheRegions(t *testing.T) {
	t.Parallel()
	literal := regexp.MustCompile(`arn:aws:[^"]*|[a-z0-9.-]*amazonaws\.com(\.cn)?`)
	// Principals of services have the same names in every partition.
	principals := regexp.MustCompile(`^(lambda|events|states|apigateway|scheduler|backup|budgets|codedeploy)\.amazonaws\.com$`)
	for _, region := range []string{"us-gov-west-1", "cn-north-1"} {
		made := synth(t, map[string]any{"region": region, "account": "111122223333", "outputs": "s3", "tracing": true})
		for _, found := range literal.FindAllString(made.Text, -1) {
			if !principals.MatchString(found) {
				t.Errorf("%s: got %s in the template", region, found)
			}
		}
		definition := named(t, made, "StepFunctions::StateMachine", "Run").Text("DefinitionString")
		if n := strings.Count(definition, `"Resource": "arn:${Partition}:states:::lambda:invoke`); n < 8 {
			t.Errorf("%s: got %d integrations of the region's partition, want 8 or more: %.300s", region, n, definition)
		}
		if url := template.Flat(made.Outputs["URL"].Value); !strings.Contains(url, "."+region+".${URLSuffix}/") {
			t.Errorf("%s: got URL %s, want the partition's suffix", region, url)
		}
	}
}
