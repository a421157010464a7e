//go:build kubernetes

package kubernetes_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/sortie-dev/sortie/local/proof/port/porttest"
)

// faults is a transport between the adapter and the API server. It injects the faults that a
// test selects.
type faults struct {
	next http.RoundTripper
	mu   sync.Mutex
	// launches are the faults of the next creations of Jobs, by name.
	launches map[string]porttest.RunnerFault
	// cut are the namespaces that cannot be watched. watches are the functions that end their
	// open watches.
	cut     map[string]bool
	watches map[string][]context.CancelFunc
	// expired are the namespaces whose next watch returns "version expired" (410).
	expired map[string]bool
	// busy makes every other call fail with 429; refused counts these calls.
	busy    bool
	refused int
}

func (f *faults) wrap(next http.RoundTripper) http.RoundTripper {
	f.next, f.launches, f.cut, f.watches = next, map[string]porttest.RunnerFault{}, map[string]bool{}, map[string][]context.CancelFunc{}
	f.expired = map[string]bool{}
	return f
}

var errLost = errors.New("connection reset")

// RoundTrip implements http.RoundTripper.
func (f *faults) RoundTrip(q *http.Request) (*http.Response, error) {
	if q.Method == http.MethodPost && strings.HasSuffix(q.URL.Path, "/jobs") && !f.isBusy() {
		return f.create(q)
	}
	// Only the informers select by the orchestrator label.
	if q.Method == http.MethodGet && strings.Contains(q.URL.RawQuery, "orchestrator") {
		return f.observe(q)
	}
	f.mu.Lock()
	busy := f.busy
	if busy {
		f.refused++
	}
	f.mu.Unlock()
	if busy {
		return refusal(q, http.StatusTooManyRequests, "TooManyRequests")
	}
	return f.next.RoundTrip(q)
}

func (f *faults) isBusy() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.busy
}

// setBusy makes all calls but watches fail with 429. It returns how many calls failed before.
func (f *faults) setBusy(busy bool) (refused int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy, refused, f.refused = busy, f.refused, 0
	return refused
}

// refusal is an answer of the API server.
func refusal(q *http.Request, code int, reason string) (*http.Response, error) {
	status, err := json.Marshal(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code, "message": reason})
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Request: q, Body: io.NopCloser(bytes.NewReader(status)),
	}, err
}

// create creates a Job with the fault selected for its name.
func (f *faults) create(q *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return nil, err
	}
	q.Body = io.NopCloser(bytes.NewReader(body))
	f.mu.Lock()
	var how porttest.RunnerFault
	for name, fault := range f.launches {
		if bytes.Contains(body, []byte(name)) {
			how = fault
			delete(f.launches, name)
		}
	}
	f.mu.Unlock()
	switch how {
	case porttest.RunnerThrottles:
		return refusal(q, http.StatusTooManyRequests, "TooManyRequests")
	case porttest.RunnerLosesRequest:
		return nil, errLost
	case porttest.RunnerLosesAnswer:
		answer, err := f.next.RoundTrip(q)
		if err == nil {
			err = errors.Join(errLost, answer.Body.Close())
		}
		return nil, err
	}
	return f.next.RoundTrip(q)
}

// observe forwards a list or watch, unless the namespace is cut.
func (f *faults) observe(q *http.Request) (*http.Response, error) {
	parts := strings.Split(q.URL.Path, "/namespaces/")
	namespace, _, _ := strings.Cut(parts[len(parts)-1], "/")
	ctx, cancel := context.WithCancel(q.Context())
	f.mu.Lock()
	cut := f.cut[namespace]
	f.watches[namespace] = append(f.watches[namespace], cancel)
	expired := f.expired[namespace] && q.URL.Query().Get("watch") != ""
	if expired {
		delete(f.expired, namespace)
	}
	f.mu.Unlock()
	if expired {
		cancel()
		return refusal(q, http.StatusGone, "Expired")
	}
	if cut {
		cancel()
		return nil, errLost
	}
	return f.next.RoundTrip(q.WithContext(ctx))
}

// cutWatches ends the watches of a namespace. If down is true, it also refuses new ones.
func (f *faults) cutWatches(namespace string, down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut[namespace] = down
	for _, end := range f.watches[namespace] {
		end()
	}
	f.watches[namespace] = nil
}

// expire makes the next watch of a namespace return "version expired" (410), and ends the open
// ones.
func (f *faults) expire(namespace string) {
	f.mu.Lock()
	f.expired[namespace] = true
	f.mu.Unlock()
	f.cutWatches(namespace, false)
}

// hasExpired reports whether that watch was answered.
func (f *faults) hasExpired(namespace string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.expired[namespace]
}

func (f *faults) set(name string, how porttest.RunnerFault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.launches[name] = how
}
