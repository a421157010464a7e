package stack_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/infra/stack"
)

// TestStreamOutlivesItsReaders checks that the timeouts of the function and its integration
// exceed the life of a stream. They are within API Gateway's limit.
func TestStreamOutlivesItsReaders(t *testing.T) {
	t.Parallel()
	const least, most = 14 * time.Minute, 15 * time.Minute // the longest stream; API Gateway: response streaming
	found := 0
	for _, m := range deployed(t).Of("ApiGateway::Method") {
		if !strings.Contains(m.Text("Integration", "Uri"), "${StreamReaders") {
			continue
		}
		found++
		waits, err := strconv.Atoi(m.Text("Integration", "TimeoutInMillis"))
		if limit := time.Duration(waits) * time.Millisecond; err != nil || limit > most || limit < least {
			t.Errorf("%s: got a timeout of %s, want %s to %s", m.ID, limit, least, most)
		}
	}
	if found == 0 {
		t.Error("got no method of stream")
	}
	if seconds := functionOf(t, deployed(t), "stream").Text("Timeout"); seconds != "899" {
		t.Errorf("got a timeout of %s s, want 899", seconds)
	}
}

// TestReadersFitIntoReservedConcurrency checks the limits of readers with and without reserved
// concurrency.
func TestReadersFitIntoReservedConcurrency(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		given                    map[string]any
		readers, total, reserved string
	}{
		{nil, "50", "", ""},
		{map[string]any{"readers": 7, "reserved": "stream=8"}, "7", "7", "8"},
		{map[string]any{"readers": 20, "reserved": "stream=100"}, "20", "90", "100"},
		{map[string]any{"reserved": "stream=0"}, "50", "", "0"},
	} {
		function := functionOf(t, synth(t, row.given), "stream")
		expect(t, function, row.readers, "Environment", "Variables", "SORTIE_READERS")
		expect(t, function, row.total, "Environment", "Variables", "SORTIE_READERS_TOTAL")
		expect(t, function, row.reserved, "ReservedConcurrentExecutions")
	}
	for reserved, want := range map[string]string{"stream=50": "readers: 50 are more than the 45", "stream=1": "readers: 50 are more than the 0"} {
		if _, err := stack.ReadSettings(given(map[string]any{"reserved": reserved})); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", reserved, err, want)
		}
	}
}
