package metric_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/metric"
)

func TestSamplesHaveTheEmbeddedFormat(t *testing.T) {
	t.Parallel()
	var c metric.Counts
	c.Record(at, []series.Sample{
		{Name: series.Runs, Value: 1, Labels: []string{"job", "Failed", "false"}},
		{Name: series.RunTotal, Value: 10.5, Labels: []string{"job"}},
		{Name: series.Retries, Value: 2, Labels: []string{"job"}},
		{Name: series.Lateness, Value: 0.25},
	})
	var out bytes.Buffer
	if err := c.Write(&out, at.Add(1), dim); err != nil {
		t.Fatal(err)
	}
	want := `{"_aws":{"Timestamp":1795262400123,"CloudWatchMetrics":[` +
		`{"Namespace":"Sortie","Dimensions":[["stage","kind","state","skipped"]],"Metrics":[{"Name":"sortie_runs_total","Unit":"Count"}]},` +
		`{"Namespace":"Sortie","Dimensions":[["stage","kind"]],"Metrics":[{"Name":"sortie_run_total_seconds","Unit":"Seconds"},{"Name":"sortie_run_retries_total","Unit":"Count"}]},` +
		`{"Namespace":"Sortie","Dimensions":[["stage"]],"Metrics":[{"Name":"sortie_schedule_lateness_seconds","Unit":"Seconds"}]}]},` +
		`"kind":"job","skipped":"false","sortie_run_retries_total":2,"sortie_run_total_seconds":10.5,"sortie_runs_total":1,` +
		`"sortie_schedule_lateness_seconds":0.25,"stage":"dev","state":"Failed"}` + "\n"
	if out.String() != want {
		t.Errorf("got line\n%s\nwant\n%s", &out, want)
	}
	out.Reset()
	if err := c.Write(&out, at, dim); err != nil || out.Len() > 0 {
		t.Errorf("second Write: got %s (%v), want nothing", &out, err)
	}
}

// TestObservedSamplesAreSummed adds samples of several kinds and labels, and more values of a
// histogram than one line can contain.
func TestObservedSamplesAreSummed(t *testing.T) {
	t.Parallel()
	var c metric.Counts
	for range 101 {
		c.Observe(series.Count(series.Attempts, 1, "2xx"), series.Sample{Name: series.AttemptLatency, Value: 0.5})
	}
	c.Observe(series.Count(series.Attempts, 1, "5xx"), series.Count(series.RelayEvents, 7))
	var out bytes.Buffer
	if err := c.Write(&out, at, dim); err != nil {
		t.Fatal(err)
	}
	values := strings.Repeat("0.5,", 99) + "0.5"
	want := `{"_aws":{"Timestamp":1795262400123,"CloudWatchMetrics":[{"Namespace":"Sortie","Dimensions":[["stage"]],"Metrics":[` +
		`{"Name":"sortie_relay_events_total","Unit":"Count"},{"Name":"sortie_webhook_attempt_seconds","Unit":"Seconds"}]}]},` +
		`"sortie_relay_events_total":7,"sortie_webhook_attempt_seconds":[` + values + `],"stage":"dev"}
{"_aws":{"Timestamp":1795262400123,"CloudWatchMetrics":[{"Namespace":"Sortie","Dimensions":[["stage"]],"Metrics":[{"Name":"sortie_webhook_attempt_seconds","Unit":"Seconds"}]}]},"sortie_webhook_attempt_seconds":[0.5],"stage":"dev"}
{"_aws":{"Timestamp":1795262400123,"CloudWatchMetrics":[{"Namespace":"Sortie","Dimensions":[["stage","outcome"]],"Metrics":[{"Name":"sortie_webhook_attempts_total","Unit":"Count"}]}]},"outcome":"2xx","sortie_webhook_attempts_total":101,"stage":"dev"}
{"_aws":{"Timestamp":1795262400123,"CloudWatchMetrics":[{"Namespace":"Sortie","Dimensions":[["stage","outcome"]],"Metrics":[{"Name":"sortie_webhook_attempts_total","Unit":"Count"}]}]},"outcome":"5xx","sortie_webhook_attempts_total":1,"stage":"dev"}
`
	if out.String() != want {
		t.Errorf("got lines\n%s\nwant\n%s", &out, want)
	}
	out.Reset()
	if err := c.Write(&out, at, dim); err != nil || out.Len() > 0 {
		t.Errorf("second Write: got %s (%v), want nothing", &out, err)
	}
}
