package client_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// inMemory is a transport that calls the handler without a network, so that a test stays in its
// synctest bubble.
type inMemory struct{ handler http.Handler }

func (n inMemory) RoundTrip(req *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	n.handler.ServeHTTP(answer, req)
	resp := answer.Result()
	resp.Request = req
	return resp, nil
}

// broken is a transport whose first calls fail.
type broken struct {
	failures int
	err      error
	then     http.RoundTripper
	calls    int
}

func (b *broken) RoundTrip(req *http.Request) (*http.Response, error) {
	b.calls++
	if b.calls <= b.failures {
		return nil, b.err
	}
	return b.then.RoundTrip(req)
}

var (
	errRefused = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	errReset   = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
)

func setup(t *testing.T, network http.RoundTripper) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{
		URL: "http://sortie.test/", Token: "s3cret", Transport: network, Clock: clock.System{}, Agent: "sortie/test",
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// answer writes a JSON response.
func answer(w http.ResponseWriter, status int, body any) {
	kind := "application/json"
	if status >= 400 {
		kind = "application/problem+json"
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		panic(err)
	}
}

// at returns the time since start.
func at(start time.Time) time.Duration { return time.Since(start) }
