package metric_test

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/wire/lambdakit/metric"
)

var (
	at  = time.UnixMilli(1_795_262_400_123)
	dim = metric.Dimensions{Function: "launch", Stage: "dev"}
)

func TestLinesHaveTheEmbeddedFormat(t *testing.T) {
	t.Parallel()
	var c metric.Counts
	c.Add("TasksDone", 1)
	c.Add("TasksDone", 2)
	c.Add("InitMs", 31)
	c.Fault("IMAGE")
	c.Fault("CAPACITY")
	c.Fault("IMAGE")
	var out bytes.Buffer
	if err := c.Write(&out, at, dim); err != nil {
		t.Fatal(err)
	}
	want := `{"InitMs":31,"TasksDone":3,"_aws":{"Timestamp":1795262400123,"CloudWatchMetrics":[{"Namespace":"Sortie","Dimensions":[["function","stage"]],"Metrics":[{"Name":"InitMs","Unit":"Milliseconds"},{"Name":"TasksDone","Unit":"Count"}]}]},"function":"launch","stage":"dev"}
{"Faults":1,"_aws":{"Timestamp":1795262400123,"CloudWatchMetrics":[{"Namespace":"Sortie","Dimensions":[["function","stage"],["function","stage","code"]],"Metrics":[{"Name":"Faults","Unit":"Count"}]}]},"code":"CAPACITY","function":"launch","stage":"dev"}
{"Faults":2,"_aws":{"Timestamp":1795262400123,"CloudWatchMetrics":[{"Namespace":"Sortie","Dimensions":[["function","stage"],["function","stage","code"]],"Metrics":[{"Name":"Faults","Unit":"Count"}]}]},"code":"IMAGE","function":"launch","stage":"dev"}
`
	if out.String() != want {
		t.Errorf("got lines\n%s", &out)
	}
	out.Reset()
	if err := c.Write(&out, at, dim); err != nil || out.Len() > 0 {
		t.Errorf("second Write: got %s (%v), want nothing", &out, err)
	}
}

func TestCountsAreSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	var (
		c    metric.Counts
		out  bytes.Buffer
		done sync.WaitGroup
	)
	for range 8 {
		done.Go(func() {
			for range 100 {
				c.Add("Many", 1)
			}
		})
	}
	done.Wait()
	if err := c.Write(&out, at, dim); err != nil || !strings.Contains(out.String(), `"Many":800`) {
		t.Errorf("got line %s (%v)", &out, err)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestWriteReturnsTheWritersError(t *testing.T) {
	t.Parallel()
	var c metric.Counts
	c.Add("One", 1)
	if err := c.Write(full{}, at, dim); err == nil {
		t.Error("got no error")
	}
}
