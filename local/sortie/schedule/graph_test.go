package schedule_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/sortie/schedule"
)

// TestGraph has two ways through a diamond, of which one decides when the last job starts.
func TestGraph(t *testing.T) {
	t.Parallel()
	nodes := []schedule.Node{
		{JobID: "extract", Takes: 10 * time.Second},
		{JobID: "prices", After: []string{"extract"}, Takes: 50 * time.Second},
		{JobID: "stock", After: []string{"extract"}, Takes: 20 * time.Second},
		{JobID: "report", After: []string{"prices", "stock", "unknown"}, Takes: 5 * time.Second},
		{JobID: "other", Takes: time.Second},
	}
	total := schedule.Graph(nodes)
	var got []string
	for _, n := range nodes {
		got = append(got, fmt.Sprintf("%s %s-%s %v", n.JobID, n.Starts, n.Ends, n.Critical))
	}
	want := "extract 0s-10s true, prices 10s-1m0s true, stock 10s-30s false, report 1m0s-1m5s true, other 0s-1s false"
	if strings.Join(got, ", ") != want || total != 65*time.Second {
		t.Errorf("got %s, total %s; want %s", strings.Join(got, ", "), total, want)
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	if got := schedule.Median(nil); got != 0 {
		t.Errorf("got %s without durations, want 0", got)
	}
	if got := schedule.Median([]time.Duration{9, 1, 5}); got != 5 {
		t.Errorf("got %d, want 5", got)
	}
}
