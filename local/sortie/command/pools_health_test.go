package command_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestPoolShowsItsStarts shows a draining pool whose platform throttles.
func TestPoolShowsItsStarts(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body := `{"id": "reports", "limit": 4, "queueLimit": 0, "draining": true, "held": 3, "queued": 0, "version": 0,
			"warm": {"min": 1, "max": 3, "image": "worker:v2", "aheadSeconds": 300, "maxAgeSeconds": 3600, "after": "recycle"}}`
		if r.URL.Path == "/v1/pools/reports/health" {
			body = `{"live": true, "ready": false, "draining": true, "held": 3, "queued": 0, "machines": 2, "lastError": null,
				"drain": {"phase": "ending", "runs": 3, "warmMachines": 6, "deadline": "2026-01-02T03:04:00Z"},
				"machineStates": {"starting": 1, "running": 1, "ending": 0}, "errors": [
				{"code": "CAPACITY", "message": "no room for a machine of performance-16x in any of the regions that the pool names, ask for a smaller one", "count": 12,
					"firstAt": "2026-01-02T03:00:00Z", "lastAt": "2026-01-02T03:04:05Z"},
				{"code": "IMAGE", "message": "unknown image\u001b[31m", "count": 1, "firstAt": "2026-01-02T02:00:00Z", "lastAt": "2026-01-02T02:00:00Z"}],
				"warmMachines": {"creating": 1, "ready": 2, "claimed": 3, "ending": 0},
				"metrics": {"limit": 4, "queueLimit": 0, "longestWaitSeconds": 0, "startingMachines": 1, "measuredStarts": 12,
				"startP50Seconds": 2.44, "startP99Seconds": 9.5, "startsPerSecond": 0.95, "nextStartAt": "2026-01-02T03:04:05Z",
				"recentStartsPerSecond": 0.25, "expectedWait": {"p50Seconds": 12.34, "p90Seconds": 118, "measured": 40}},
				"remaining": [
				{"runId": "a", "taskId": "a", "state": "Running", "since": "2026-01-02T03:00:00Z", "cancelling": true},
				{"runId": "b", "taskId": "b", "state": "Pending", "since": "2026-01-02T03:00:01Z", "cancelling": false}]}`
		}
		_, _ = fmt.Fprint(w, body)
	}))
	t.Cleanup(server.Close)
	got := sortie(t, map[string]string{"SORTIE_URL": server.URL}, "", "pools", "show", "reports")
	want := `reports: draining
warm machines: 1 to 3 of worker:v2, 5m0s ahead of firings, replaced after 1h0m0s
warm machines: recycled after a clean exit
slots: 3 of 4 held, 2 with a machine
queue: 0 of no limit
machines: 1 starting, 1 running, 0 ending
warm: 2 ready, 1 in creation, 3 of runs, 0 ending
starts: 2.4 s for half of 12, 9.5 s for 99 of 100
starts a second: 0.25 in the last minute, 0.95 permitted
next start: 2026-01-02 03:04:05 UTC
a normal run from now waits 12.3 s, or up to 118.0 s (9 of 10)
drain: ending, 3 runs and 6 warm machines remain
remains: a, Running since 2026-01-02 03:00:00 UTC, asked to end
remains: b, Pending since 2026-01-02 03:00:01 UTC
remains: 1 more
error: CAPACITY, 12 times, last at 2026-01-02 03:04:05 UTC
  first at 2026-01-02 03:00:00 UTC
  no room for a machine of performance-16x in any of the regions that the pool
  names, ask for a smaller one
error: IMAGE, 1 times, last at 2026-01-02 02:00:00 UTC
  unknown image [31m
`
	for line := range strings.Lines(got.stdout) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
			t.Errorf("got a line of %d characters, want at most 80: %s", n, line)
		}
	}
	if got.stdout != want || got.code != 0 {
		t.Errorf("got %d\n%s%s\nwant\n%s", got.code, got.stdout, got.stderr, want)
	}
}
