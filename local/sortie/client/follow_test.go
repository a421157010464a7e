package client_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// life is a server with one task that enters each state after its duration. If waits is set, it
// delays responses.
type life struct {
	start  time.Time
	states []string
	from   []time.Duration
	waits  bool
	calls  int
}

func (l *life) now() int {
	n := 0
	for i, from := range l.from {
		if at(l.start) >= from {
			n = i
		}
	}
	return n
}

func (l *life) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/events") {
		after, _ := strconv.Atoi(r.URL.Query().Get("after"))
		var page contract.TaskEvents
		for i := after; i <= l.now(); i++ {
			page.Events = append(page.Events, contract.TaskEvent{Seq: i + 1, State: l.states[i]})
		}
		answer(w, 200, page)
		return
	}
	l.calls++
	if seconds, _ := strconv.Atoi(r.URL.Query().Get("wait")); l.waits {
		for first, until := l.now(), time.Now().Add(time.Duration(seconds)*time.Second); l.now() == first && time.Now().Before(until); {
			<-time.After(10 * time.Millisecond)
		}
	}
	status := contract.Status{TaskID: taskID, Status: "processing", State: l.states[l.now()]}
	if l.now() == len(l.states)-1 {
		status.Status = "success"
	} else {
		w.Header().Set("Retry-After", "2")
	}
	answer(w, 200, status)
}

func TestFollowReportsEveryState(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		waits    bool
		outage   int
		maxCalls int
		lateBy   time.Duration
	}{
		"a server that waits":    {true, 0, 8, 100 * time.Millisecond},
		"a server that does not": {false, 0, 20, 2 * time.Second},
		"a server that restarts": {true, 4, 8, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := &life{
					start: time.Now(), waits: row.waits,
					states: []string{"Pending", "ContainerCreating", "Running", "Terminating", "Completed"},
					from:   []time.Duration{0, 10 * time.Millisecond, time.Second, 30 * time.Second, 30*time.Second + 5*time.Millisecond},
				}
				network := &broken{failures: row.outage, err: errRefused, then: inMemory{server}}
				var states []string
				last, err := setup(t, network).WithRetry(time.Minute, nil).Follow(t.Context(), taskID, 20*time.Second,
					func(_ contract.Status, events []contract.TaskEvent) {
						for _, e := range events {
							states = append(states, e.State)
						}
					})
				if err != nil || last.Status != "success" {
					t.Fatalf("got status %q, error %v, want success", last.Status, err)
				}
				if diff := cmp.Diff(server.states, states); diff != "" {
					t.Error(diff)
				}
				if late := at(server.start) - 30*time.Second; late > row.lateBy {
					t.Errorf("got the end %v late, want at most %v", late, row.lateBy)
				}
				if server.calls > row.maxCalls {
					t.Errorf("got %d calls in 30 s, want at most %d", server.calls, row.maxCalls)
				}
			})
		})
	}
}

func TestFollowEndsIfTheTaskIsUnknown(t *testing.T) {
	t.Parallel()
	c := setup(t, inMemory{http.NotFoundHandler()})
	_, err := c.WithRetry(time.Minute, nil).Follow(t.Context(), taskID, time.Second, func(contract.Status, []contract.TaskEvent) {
		t.Error("got an update, want none")
	})
	if err == nil {
		t.Error("got no error")
	}
}
