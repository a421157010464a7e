package redelivery_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/redelivery"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	failed := []redelivery.Failed{{Action: "onFailure"}, {Action: "onRetry#2"}}
	for name, row := range map[string]struct {
		failed  []redelivery.Failed
		sending []spec.EndAction
		action  spec.EndAction
		want    []spec.EndAction
		refusal string
	}{
		"one":                        {failed: failed, action: "onRetry#2", want: []spec.EndAction{"onRetry#2"}},
		"all":                        {failed: failed, want: []spec.EndAction{"onFailure", "onRetry#2"}},
		"all that are not sent now":  {failed: failed, sending: []spec.EndAction{"onFailure"}, want: []spec.EndAction{"onRetry#2"}},
		"one that is sent now":       {failed: failed, sending: []spec.EndAction{"onFailure"}, action: "onFailure"},
		"one before its first end":   {sending: []spec.EndAction{"onSkip"}, action: "onSkip"},
		"all before their first end": {sending: []spec.EndAction{"onSkip"}},
		"unknown":                    {failed: failed, action: "onLate", refusal: "want one of onFailure, onRetry#2"},
		"none":                       {action: "onFailure", refusal: "no notification of the run has failed"},
		"all of none":                {},
		"none, but another is sent":  {sending: []spec.EndAction{"onSkip"}, action: "onFailure", refusal: "no notification of the run has failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			again, err := redelivery.Choose(row.failed, row.sending, row.action)
			if !slices.Equal(again, row.want) {
				t.Errorf("got %v, want %v", again, row.want)
			}
			f := fault.Of(err)
			if (f != nil) != (row.refusal != "") || f != nil && (f.Field != "action" || !strings.Contains(f.Message, row.refusal)) {
				t.Errorf("got %v, want %q", err, row.refusal)
			}
		})
	}
}

func TestNewestFailuresAreKept(t *testing.T) {
	t.Parallel()
	var failed []redelivery.Failed
	for i := range redelivery.Most + 2 {
		failed = redelivery.Add(failed, redelivery.Failed{Action: spec.EndAction(fmt.Sprint(i))})
	}
	failed = redelivery.Add(failed, redelivery.Failed{Action: "5", Answer: "again"})
	last := failed[len(failed)-1]
	if len(failed) != redelivery.Most || failed[0].Action != "2" || last.Action != "5" || last.Answer != "again" {
		t.Errorf("got %d from %s to %+v, want %d from 2 to 5", len(failed), failed[0].Action, last, redelivery.Most)
	}
	if left := redelivery.Remove([]redelivery.Failed{{Action: "a"}}, "a"); left != nil {
		t.Errorf("got %v, want nil", left)
	}
}
