package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sortie-dev/sortie/shared/wire/lambdakit/gateway"
)

// parts reads a stream as Lambda does: a prelude of JSON, eight zero bytes, the body.
func parts(r *events.APIGatewayProxyStreamingResponse) (prelude, body string, err error) {
	var text bytes.Buffer
	_, err = io.Copy(&text, struct{ io.Reader }{r})
	prelude, body, _ = strings.Cut(text.String(), strings.Repeat("\x00", 8))
	return prelude, body, err
}

func (s *served) streamed(t *testing.T, method string) (*events.APIGatewayProxyStreamingResponse, string) {
	t.Helper()
	r, err := s.Streaming(t.Context(), event(method))
	if err != nil {
		t.Fatal(err)
	}
	prelude, body, err := parts(r)
	if err != nil {
		t.Fatalf("stream: %v", err)
	}
	var head struct{ StatusCode int }
	if err := json.Unmarshal([]byte(prelude), &head); err != nil || head.StatusCode != r.StatusCode {
		t.Errorf("got prelude %s (%v)", prelude, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	return r, body
}

func TestStreamSendsEachWrite(t *testing.T) {
	t.Parallel()
	next := make(chan string)
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Early", "1")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		w.Header().Set("X-Late", "1")
		for text := range next {
			_, _ = io.WriteString(w, text)
		}
	}))
	r, err := s.Streaming(t.Context(), event("GET")) // returns before the first write
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header(r.MultiValueHeaders)
	if r.StatusCode != http.StatusOK || header.Get("X-Early") != "1" || header.Get("X-Late") != "" {
		t.Errorf("got %d %v", r.StatusCode, header)
	}
	for _, text := range []string{"one", "two"} {
		next <- text
		got := make([]byte, len(text))
		if _, err := io.ReadFull(r.Body, got); err != nil || string(got) != text {
			t.Errorf("got %q (%v), want %q", got, err, text)
		}
	}
	close(next)
	if rest, err := io.ReadAll(r.Body); err != nil || len(rest) > 0 {
		t.Errorf("got further %q (%v)", rest, err)
	}
}

// TestIncompleteStreamBreaks checks that no client takes a part of a response for all of it.
func TestIncompleteStreamBreaks(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"a panic": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "part"); panic("x") },
		"an abort": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "part")
			panic(http.ErrAbortHandler)
		},
		"only a status": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusOK)
			panic(http.ErrAbortHandler)
		},
		"too short": writes("part", "Content-Length", "9"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, handler)
			r, err := s.Streaming(t.Context(), event("GET"))
			if err != nil {
				t.Fatal(err)
			}
			_, body, err := parts(r)
			if _, broken := errors.AsType[gateway.Broken](err); !broken || body != "part" && body != "" {
				t.Errorf("got %q and error %v, want Broken", body, err)
			}
			if err := r.Close(); err != nil || len(s.ended) != 1 || s.ended[0] != 0 || s.logs.Len() == 0 {
				t.Errorf("got statuses %v (%v), log %s", s.ended, err, &s.logs)
			}
		})
	}
}

func TestStreamEndsAtContentLength(t *testing.T) {
	t.Parallel()
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "3")
		_, _ = io.WriteString(w, "one")
		if _, err := io.WriteString(w, "two"); !errors.Is(err, http.ErrContentLength) {
			t.Errorf("got %v, want ErrContentLength", err)
		}
	}))
	if _, body := s.streamed(t, "GET"); body != "one" {
		t.Errorf("got body %q, want one", body)
	}
}

func TestDisconnectEndsTheRequest(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { ended <- r.Context().Err() }()
		for {
			if _, err := w.Write([]byte("more")); err != nil {
				panic(http.ErrAbortHandler)
			}
		}
	}))
	r, err := s.Streaming(t.Context(), event("GET"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(r.Body, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-ended: // before Close returned
		t.Logf("context error: %v", err)
	default:
		t.Error("got a running handler after Close")
	}
	if len(s.ended) != 1 || s.ended[0] != 0 {
		t.Errorf("got statuses %v, want 0", s.ended)
	}
}

func TestStreamBreaksBeforeLambdasDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "part")
			<-r.Context().Done()
			panic(http.ErrAbortHandler)
		}))
		lambda, cancel := context.WithTimeout(t.Context(), gateway.Margin+20*time.Millisecond)
		defer cancel()
		r, err := s.Streaming(lambda, event("GET"))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if _, body, err := parts(r); body != "part" || !errors.Is(err, context.DeadlineExceeded) || lambda.Err() != nil {
			t.Errorf("got %q and error %v; Lambda's context: %v", body, err, lambda.Err())
		}
	})
}
