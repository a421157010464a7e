package httpkit_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// raw serves bodies on a real listener, and returns its address.
func raw(t *testing.T, c clock.Clock, token string) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: bodies(t, c, token), MaxHeaderBytes: 4 << 10, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(httpkit.Listener(listener, func() string { return "id" })) }()
	t.Cleanup(func() { _ = server.Close() })
	return listener.Addr().String()
}

// bodies serves one route that reads a body. A token is required.
func bodies(t *testing.T, c clock.Clock, token string) http.Handler {
	t.Helper()
	handler, err := httpkit.New(httpkit.Config{
		Loopback: true, Tokens: httpkit.FixedTokens(access.Full("client", token, "local", "local")), Clock: c, Log: slog.New(slog.DiscardHandler), NewID: func() string { return "id" },
	}, httpkit.Route{
		Method: http.MethodPost, Pattern: "/export", Access: httpkit.ForClients, Scope: access.RunsWrite,
		Handle: func(w http.ResponseWriter, r *http.Request) error {
			return httpkit.DecodeJSON(w, r, &struct{}{})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

// exchange sends text on a new connection and reads one response.
func exchange(t *testing.T, address, text string) (*http.Response, contract.Problem) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var p contract.Problem
	if kind := answer.Header.Get("Content-Type"); kind != "application/problem+json" {
		t.Errorf("got Content-Type %q, want application/problem+json", kind)
	}
	if err := json.NewDecoder(answer.Body).Decode(&p); err != nil {
		t.Fatal(err)
	}
	return answer, p
}

// TestRefusalPrecedesASlowBody sends no body. The refusal must not wait for it.
func TestRefusalPrecedesASlowBody(t *testing.T) {
	t.Parallel()
	address := raw(t, clock.System{}, "a-token-of-the-test-0123456789abcdef")
	for name, header := range map[string]string{
		"a length":     "Content-Length: 100\r\n",
		"chunks":       "Transfer-Encoding: chunked\r\n",
		"a large one":  "Content-Length: 900000\r\n",
		"100-continue": "Content-Length: 100\r\nExpect: 100-continue\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer, p := exchange(t, address, "POST /export HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+header+"\r\n")
			if answer.StatusCode != http.StatusUnauthorized || p.Code != "UNAUTHENTICATED" || !answer.Close {
				t.Errorf("got %d %+v, closed %t, want 401 and a closed connection", answer.StatusCode, p, answer.Close)
			}
		})
	}
}

// TestSlowBodyIsLimited sends only the start of a body.
func TestSlowBodyIsLimited(t *testing.T) {
	t.Parallel()
	const token = "a-token-of-the-test-0123456789abcdef"
	answer, p := exchange(t, raw(t, soon{}, token), "POST /export HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+token+
		"\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	if answer.StatusCode != http.StatusBadRequest || !strings.Contains(p.Detail, "incomplete body") || !answer.Close {
		t.Errorf("got %d %+v, closed %t, want 400 for an incomplete body and a closed connection", answer.StatusCode, p, answer.Close)
	}
}

// timedWriter counts the deadlines of a connection.
type timedWriter struct {
	*httptest.ResponseRecorder

	deadlines atomic.Int64
}

// SetReadDeadline implements the method that http.ResponseController uses.
func (w *timedWriter) SetReadDeadline(time.Time) error {
	w.deadlines.Add(1)
	return nil
}

// lateBody is a body that ends exactly when its time limit expires.
type lateBody struct{ late func() }

func (b lateBody) Read([]byte) (int, error) {
	b.late()
	return 0, io.EOF
}

// TestLimitOfABodyEndsWithItsRequest sends bodies that arrive at the last moment. The
// connection then serves another request, whose reads must not fail.
func TestLimitOfABodyEndsWithItsRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const token = "a-token-of-the-test-0123456789abcdef"
		now := clock.NewVirtual(time.Now())
		handler := bodies(t, now, token)
		for i := range 400 {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/export", lateBody{func() { now.Advance(time.Minute) }})
			r.Header.Set("Content-Type", "application/json")
			if r.Host = "localhost"; i%2 == 0 {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			w := &timedWriter{ResponseRecorder: httptest.NewRecorder()}
			handler.ServeHTTP(w, r)
			during := w.deadlines.Load()
			synctest.Wait()
			if after := w.deadlines.Load(); after != during {
				t.Fatalf("request %d, %d: got %d deadlines after its end, want none", i, w.Code, after-during)
			}
			if during > 0 && w.Code == http.StatusUnauthorized && w.Header().Get("Connection") != "close" {
				t.Fatalf("request %d: got a connection whose reads fail, want it closed", i)
			}
		}
	})
}

// soon is a clock whose timers fire after a millisecond.
type soon struct{ clock.System }

// NewTimer implements clock.Clock.
func (c soon) NewTimer(time.Duration) (<-chan time.Time, func()) {
	return c.System.NewTimer(time.Millisecond)
}

// TestOwnErrorsOfTheServerAreProblems sends requests that no handler receives.
func TestOwnErrorsOfTheServerAreProblems(t *testing.T) {
	t.Parallel()
	address := raw(t, clock.System{}, "a-token-of-the-test-0123456789abcdef")
	for request, status := range map[string]int{
		"nonsense\r\n\r\n":                             400,
		"GET /export HTTP/1.1\r\n\r\n":                 400, // no Host
		"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n": 400,
		"GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 16<<10) + "\r\n\r\n":               431,
		"POST / HTTP/1.1\r\nHost: localhost\r\nExpect: the-unexpected\r\nContent-Length: 0\r\n\r\n": 417,
		"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n":                     501,
		"GET / HTTP/3.7\r\nHost: localhost\r\n\r\n":                                                 505,
	} {
		t.Run(fmt.Sprint(status, " ", request[:12]), func(t *testing.T) {
			t.Parallel()
			answer, p := exchange(t, address, request)
			if answer.StatusCode != status || p.Status != status || p.Code == "" || p.Detail == "" || p.CorrelationID != "id" {
				t.Errorf("got %d %+v, want a problem with %d", answer.StatusCode, p, status)
			}
		})
	}
}
