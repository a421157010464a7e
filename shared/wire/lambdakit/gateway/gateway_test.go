package gateway_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sortie-dev/sortie/shared/wire/lambdakit/gateway"
)

// served is a Gateway with its log and the statuses that it passed to Ended.
type served struct {
	gateway.Gateway
	logs bytes.Buffer

	mu    sync.Mutex
	ended []int
}

func serve(t testing.TB, handler http.Handler) *served {
	t.Helper()
	s := &served{}
	s.Gateway = gateway.Gateway{
		Handler: handler, Log: slog.New(slog.NewJSONHandler(&s.logs, nil)),
		Ended: func(_ context.Context, status int) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.ended = append(s.ended, status)
		},
	}
	return s
}

func event(method string) []byte { return []byte(`{"httpMethod":"` + method + `","path":"/x"}`) }

func (s *served) buffered(t *testing.T, method string) events.APIGatewayProxyResponse {
	t.Helper()
	text, err := s.Buffered(t.Context(), event(method))
	if err != nil {
		t.Fatal(err)
	}
	var answer events.APIGatewayProxyResponse
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return answer
}

func writes(body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Add(header[i], header[i+1])
		}
		_, _ = io.WriteString(w, body)
	}
}

func TestAnswersAreUnchanged(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, method string
		handler      http.HandlerFunc
		status       int
		body, kind   string
		binary       bool
	}{
		{"JSON", "GET", writes(`{"a":"<ü>"}`, "content-type", "application/json"), 200, `{"a":"<ü>"}`, "application/json", false},
		{"XML", "GET", writes(`<a/>`, "Content-Type", "application/xml; charset=utf-8"), 200, `<a/>`, "application/xml; charset=utf-8", false},
		{"a problem", "GET", writes(`{}`, "Content-Type", "application/problem+json"), 200, `{}`, "application/problem+json", false},
		{"lines of JSON", "GET", writes("{}\n", "Content-Type", "application/x-ndjson"), 200, "{}\n", "application/x-ndjson", false},
		{"signed lines", "GET", writes("{}\n", "Content-Type", "application/vnd.dsse+x-ndjson"), 200, "{}\n", "application/vnd.dsse+x-ndjson", false},
		{"bytes", "GET", writes("\x00\xff", "Content-Type", "application/octet-stream"), 200, "\x00\xff", "application/octet-stream", true},
		{"invalid text", "GET", writes("a\xff", "Content-Type", "text/plain"), 200, "a\xff", "text/plain", true},
		{"compressed", "GET", writes("abc", "Content-Type", "text/plain", "Content-Encoding", "gzip"), 200, "abc", "text/plain", true},
		{"no type", "GET", writes("<html>"), 200, "<html>", "text/html; charset=utf-8", false},
		{"nothing", "GET", func(http.ResponseWriter, *http.Request) {}, 200, "", "", false},
		{"HEAD", "HEAD", writes("abc", "Content-Type", "text/plain"), 200, "", "text/plain", false},
		{"no content", "GET", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
			_, _ = w.Write([]byte("x"))
		}, 204, "", "", false},
		{"not modified", "GET", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) }, 304, "", "", false},
		{"the first status", "GET", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusCreated)
			w.Header().Set("Content-Type", "too/late")
			w.WriteHeader(http.StatusInternalServerError)
		}, 201, "", "", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, row.handler)
			a := s.buffered(t, row.method)
			body := a.Body
			if a.IsBase64Encoded {
				raw, err := base64.StdEncoding.DecodeString(a.Body)
				if err != nil {
					t.Fatal(err)
				}
				body = string(raw)
			}
			kind := http.Header(a.MultiValueHeaders).Get("Content-Type")
			if a.StatusCode != row.status || body != row.body || a.IsBase64Encoded != row.binary || kind != row.kind {
				t.Errorf("buffered: got %+v", a)
			}
			r, text := s.streamed(t, row.method)
			if r.StatusCode != row.status || text != row.body || http.Header(r.MultiValueHeaders).Get("Content-Type") != row.kind {
				t.Errorf("streamed: got %+v %q", r, text)
			}
			if len(s.ended) != 2 || s.ended[0] != row.status || s.ended[1] != row.status {
				t.Errorf("got statuses %v", s.ended)
			}
		})
	}
}

func TestHeadersKeepAllTheirValues(t *testing.T) {
	t.Parallel()
	s := serve(t, writes("x", "Vary", "a", "Vary", "b", "Connection", "close", "Transfer-Encoding", "chunked", "etag", `"1"`))
	header := http.Header(s.buffered(t, "GET").MultiValueHeaders)
	if got := header.Values("Vary"); len(got) != 2 || header.Get("ETag") != `"1"` || header.Get("Connection") != "" || header.Get("Transfer-Encoding") != "" {
		t.Errorf("got header %v", header)
	}
}

func TestLocationsGetTheStage(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ path, location, want string }{
		{"/dev/x", "/status/t1", "/dev/status/t1"},
		{"/x", "/status/t1", "/status/t1"},
		{"", "/status/t1", "/status/t1"},
		{"/other", "/status/t1", "/status/t1"},
		{"/dev/x", "https://b.example/k?s=1", "https://b.example/k?s=1"},
		{"/dev/x", "//b.example/k", "//b.example/k"},
	} {
		s := serve(t, writes("", "Location", row.location))
		event := []byte(`{"httpMethod":"GET","path":"/x","requestContext":{"path":"` + row.path + `"}}`)
		text, err := s.Buffered(t.Context(), event)
		if err != nil || !strings.Contains(string(text), `"Location":["`+row.want+`"]`) {
			t.Errorf("%+v: got answer %s (%v)", row, text, err)
		}
		r, err := s.Streaming(t.Context(), event)
		if err != nil || http.Header(r.MultiValueHeaders).Get("Location") != row.want {
			t.Errorf("%+v: got stream %+v (%v)", row, r, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestTooLargeAnswerIsAProblem(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"text":      strings.Repeat("x", gateway.AnswerLimit+1),
		"in JSON":   strings.Repeat(`"`, gateway.AnswerLimit/2),
		"as base64": strings.Repeat("\xff", gateway.AnswerLimit*4/5),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, writes(body, "Content-Type", "text/plain", "ETag", `"1"`, "Content-Length", "9"))
			a := s.buffered(t, "GET")
			header := http.Header(a.MultiValueHeaders)
			if a.StatusCode != http.StatusInternalServerError || header.Get("Content-Type") != "application/problem+json" || header.Get("ETag") != "" || !strings.Contains(a.Body, "request a range") {
				t.Errorf("got answer %d %v %.300s", a.StatusCode, header, a.Body)
			}
			if !strings.Contains(s.logs.String(), "exceeds Lambda") || len(s.ended) != 1 || s.ended[0] != 500 {
				t.Errorf("got log %s and statuses %v", &s.logs, s.ended)
			}
		})
	}
	s := serve(t, writes(strings.Repeat("x", gateway.AnswerLimit-1000), "Content-Type", "text/plain"))
	if a := s.buffered(t, "GET"); a.StatusCode != http.StatusOK || len(a.Body) != gateway.AnswerLimit-1000 {
		t.Errorf("answer below the limit: got %d with %d bytes", a.StatusCode, len(a.Body))
	}
}

func TestPanicsAreProblemsAndLogged(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		throw any
		logs  string
	}{
		{"a value", "out of ideas", "gateway_test.go"},
		{"an abort", http.ErrAbortHandler, "aborted"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(row.throw) }))
			a := s.buffered(t, "GET")
			r, text := s.streamed(t, "GET")
			if a.StatusCode != http.StatusInternalServerError || !strings.Contains(a.Body, "INTERNAL") || r.StatusCode != http.StatusInternalServerError || text != a.Body {
				t.Errorf("got answers %+v and %d %s", a, r.StatusCode, text)
			}
			if strings.Contains(a.Body, "ideas") || !strings.Contains(s.logs.String(), row.logs) {
				t.Errorf("got answer %s, log %s", a.Body, &s.logs)
			}
		})
	}
}

func TestContextEndsBeforeLambdasDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			if !errors.Is(r.Context().Err(), context.DeadlineExceeded) {
				t.Errorf("got context error %v", r.Context().Err())
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, "later")
		}))
		lambda, cancel := context.WithTimeout(t.Context(), gateway.Margin+10*time.Millisecond)
		defer cancel()
		text, err := s.Buffered(lambda, event("GET"))
		if err != nil || !bytes.Contains(text, []byte("503")) || lambda.Err() != nil {
			t.Errorf("got answer %s (%v), Lambda's context %v", text, err, lambda.Err())
		}
		lambda, cancel = context.WithTimeout(t.Context(), gateway.Margin+10*time.Millisecond)
		defer cancel()
		r, err := s.Streaming(lambda, event("GET"))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if _, body, err := parts(r); err != nil || r.StatusCode != http.StatusServiceUnavailable || body != "later" {
			t.Errorf("got stream %d %q (%v)", r.StatusCode, body, err)
		}
	})
}
