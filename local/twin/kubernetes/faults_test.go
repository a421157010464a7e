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

	"github.com/sortie-dev/sortie/shared/porttest"
)

// faults is a transport between the adapter and the API server that loses the calls
// that a test selects.
type faults struct {
	next http.RoundTripper
	mu   sync.Mutex
	// launches are the faults of the next creations of Jobs, by name.
	launches map[string]porttest.RunnerFault
	// cut are the namespaces that cannot be watched, watches ends their open watches.
	cut     map[string]bool
	watches map[string][]context.CancelFunc
}

func (f *faults) wrap(next http.RoundTripper) http.RoundTripper {
	f.next, f.launches, f.cut, f.watches = next, map[string]porttest.RunnerFault{}, map[string]bool{}, map[string][]context.CancelFunc{}
	return f
}

var errLost = errors.New("connection reset")

// RoundTrip implements http.RoundTripper.
func (f *faults) RoundTrip(q *http.Request) (*http.Response, error) {
	if q.Method == http.MethodPost && strings.HasSuffix(q.URL.Path, "/jobs") {
		return f.create(q)
	}
	// The informers select by a label of Sortie.
	if q.Method == http.MethodGet && strings.Contains(q.URL.RawQuery, "orchestrator") {
		return f.observe(q)
	}
	return f.next.RoundTrip(q)
}

// create creates a Job, with the fault of its name.
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
		status, err := json.Marshal(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "TooManyRequests", "code": 429, "message": "too many requests"})
		return &http.Response{
			StatusCode: http.StatusTooManyRequests, Header: http.Header{"Content-Type": {"application/json"}}, Request: q,
			Body: io.NopCloser(bytes.NewReader(status)),
		}, err
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

// observe lists or watches, unless the namespace is cut.
func (f *faults) observe(q *http.Request) (*http.Response, error) {
	parts := strings.Split(q.URL.Path, "/namespaces/")
	namespace, _, _ := strings.Cut(parts[len(parts)-1], "/")
	ctx, cancel := context.WithCancel(q.Context())
	f.mu.Lock()
	cut := f.cut[namespace]
	f.watches[namespace] = append(f.watches[namespace], cancel)
	f.mu.Unlock()
	if cut {
		cancel()
		return nil, errLost
	}
	return f.next.RoundTrip(q.WithContext(ctx))
}

// cutWatches ends the watches of a namespace, and refuses new ones while down.
func (f *faults) cutWatches(namespace string, down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut[namespace] = down
	for _, end := range f.watches[namespace] {
		end()
	}
	f.watches[namespace] = nil
}

func (f *faults) set(name string, how porttest.RunnerFault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.launches[name] = how
}
