package series_test

import (
	"fmt"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/series"
)

func TestOnlyListedLabelsAreCounted(t *testing.T) {
	t.Parallel()
	ended := func(labels map[string]string) (run.Run, []run.Event) {
		r := firing()
		r.Labels = labels
		d, err := run.Decide(run.New(r, epoch).Run, run.CancelRequested{}, epoch)
		if err != nil {
			t.Fatal(err)
		}
		return d.Run, d.Events
	}
	l := series.NewLabels([]string{"team"})
	r, events := ended(map[string]string{"team": "data", "env": "prod"})
	if got := l.OfCommit(r, events); len(got) != 1 || got[0].Name != series.RunsByLabel || fmt.Sprint(got[0].Labels) != "[team data job Cancelled]" {
		t.Errorf("got %v, want the run by its team alone", got)
	}
	if got := l.OfCommit(r, events[:1]); len(got) > 0 {
		t.Errorf("got %v before the end, want none", got)
	}
	for name, none := range map[string]*series.Labels{"no keys": series.NewLabels(nil), "another key": series.NewLabels([]string{"owner"})} {
		if got := none.OfCommit(r, events); len(got) > 0 {
			t.Errorf("%s: got %v, want none", name, got)
		}
	}
	for i := range 200 {
		l.OfCommit(ended(map[string]string{"team": fmt.Sprint(i)}))
	}
	for value, want := range map[string]string{"data": "data", "98": "98", "99": series.OtherValue, "new": series.OtherValue} {
		if got := l.OfCommit(ended(map[string]string{"team": value})); len(got) != 1 || got[0].Labels[1] != want {
			t.Errorf("%s: got %v, want the value %s", value, got, want)
		}
	}
}
