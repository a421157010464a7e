package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestDoSendsARequestOfTheCaller(t *testing.T) {
	t.Parallel()
	var got []string
	c := testClient(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, strings.Join([]string{
			r.Method, r.URL.RequestURI(), r.Header.Get("Authorization"), r.Header.Get("User-Agent"), r.Header.Get("Content-Type"), string(body),
		}, " "))
		w.Header().Set("ETag", `"1"`)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"own": 7}`)
	}, func(config *Config) { config.UserAgent = "tool/1" })
	for _, r := range []Request{
		{Method: http.MethodPost, Path: "/v1/x", Query: url.Values{"a": {"b c"}}, Body: map[string]int{"n": 1}},
		{Method: http.MethodPut, Path: "/v1/a%2Fb", Header: http.Header{"Content-Type": {"application/yaml"}}, Content: strings.NewReader("n: 1"), Size: 4},
		{Method: http.MethodPost, Path: "/v1/x", Content: bytes.NewReader(nil)},
	} {
		answer, err := c.Do(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		var own struct{ Own int }
		if err := answer.Decode(&own); err != nil || own.Own != 7 || answer.Status != http.StatusCreated || answer.Header.Get("ETag") != `"1"` {
			t.Errorf("got %+v (%v), want the answer", answer, err)
		}
	}
	want := []string{
		`POST /v1/x?a=b+c Bearer secret tool/1 application/json {"n":1}`,
		`PUT /v1/a%2Fb Bearer secret tool/1 application/yaml n: 1`,
		`POST /v1/x Bearer secret tool/1 application/json `,
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %q, want %q", got[i], want[i])
		}
	}
	if err := (&Answer{Body: []byte("<html>")}).Decode(new(int)); err == nil {
		t.Error("a page: got no error")
	}
	if _, err := New(Config{UserAgent: "a\nb"}); err == nil {
		t.Error("a user agent of two lines: got no error")
	}
}

func TestRepeatableRequestsAreRetriedWithTheirContent(t *testing.T) {
	t.Parallel()
	for repeatable, want := range map[bool]int{true: 3, false: 1} {
		requests := 0
		c := testClient(t, func(w http.ResponseWriter, r *http.Request) {
			if body, err := io.ReadAll(r.Body); err != nil || string(body) != "content" {
				t.Errorf("got %q (%v), want the content", body, err)
			}
			requests++
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		_, err := c.Do(t.Context(), Request{
			Method: http.MethodPut, Path: "/v1/x", Header: http.Header{"If-Match": {`"1"`}},
			Content: strings.NewReader("content"), Size: 7, Repeatable: repeatable,
		})
		if !errors.Is(err, ErrServer) || requests != want {
			t.Errorf("repeatable %t: got %v after %d requests, want %d", repeatable, err, requests, want)
		}
	}
}

func TestOpenLeavesTheBody(t *testing.T) {
	t.Parallel()
	c := testClient(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/refused":
			w.Header().Set("X-Should-Retry", "false")
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, "other text")
		case "/silent":
			_, _ = io.WriteString(w, "first")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		default:
			_, _ = io.WriteString(w, "lines")
		}
	})
	open := func(path string, options ...Option) (string, error) {
		response, err := c.Open(t.Context(), Request{Method: http.MethodGet, Path: path}, options...)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		return string(text), err
	}
	if text, err := open("/"); err != nil || text != "lines" {
		t.Errorf("got %q (%v), want the body", text, err)
	}
	_, err := open("/refused")
	if refused, ok := errors.AsType[*Error](err); !ok || string(refused.Body) != "other text" || refused.Header.Get("X-Should-Retry") != "false" {
		t.Errorf("got %+v, want an error with header and body", err)
	}
	text, err := open("/silent", WithTimeout(100*time.Millisecond))
	if lost, ok := errors.AsType[*ConnectionError](err); !ok || !lost.Timeout() || text != "first" {
		t.Errorf("got %q (%v), want a timeout after the first part", text, err)
	}
}

func TestNewRequestIsNotSent(t *testing.T) {
	t.Parallel()
	c := testClient(t, func(http.ResponseWriter, *http.Request) { t.Error("got a request, want none") })
	request, err := c.NewRequest(t.Context(), Request{Method: http.MethodGet, Path: "/v1/x", Header: http.Header{"Accept": {"text/event-stream"}}})
	if err != nil || request.Header.Get("Authorization") != "Bearer secret" || request.Header.Get("Accept") != "text/event-stream" || request.URL.Path != "/v1/x" {
		t.Errorf("got %+v (%v), want the request with its headers", request, err)
	}
}

// offline answers with err or a status until the outage ends.
type offline struct {
	until  time.Time
	err    error
	status int
	header http.Header
}

func (o offline) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), Request: r}
	if time.Now().Before(o.until) {
		if o.err != nil {
			return nil, o.err
		}
		answer.StatusCode, answer.Header = o.status, o.header
	}
	return answer, nil
}

func TestRetryWaitsThroughAnOutage(t *testing.T) {
	t.Parallel()
	lost := errors.New("network is down")
	for name, row := range map[string]struct {
		network offline
		limit   time.Duration
		final   func(error) bool
		most    int // retries
		ends    bool
	}{
		"no connection":           {offline{err: lost}, time.Minute, nil, 40, true},
		"unavailable":             {offline{status: 503, header: http.Header{"Retry-After": {"7"}}}, time.Minute, nil, 5, true},
		"a longer outage":         {offline{err: lost}, 20 * time.Second, nil, 20, false},
		"no limit":                {offline{err: lost}, 0, nil, 0, false},
		"the server forbids it":   {offline{status: 503, header: http.Header{"X-Should-Retry": {"false"}}}, time.Minute, nil, 0, false},
		"a refusal":               {offline{status: 409}, time.Minute, nil, 0, false},
		"final for the caller":    {offline{err: lost}, time.Minute, func(err error) bool { return errors.Is(err, lost) }, 0, false},
		"an end before the limit": {offline{err: lost}, time.Hour, nil, 40, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				row.network.until = time.Now().Add(30 * time.Second)
				c, err := New(Config{HTTP: &http.Client{Transport: row.network}, Retries: -1})
				if err != nil {
					t.Fatal(err)
				}
				retries, begun := 0, time.Now()
				err = c.Retry(t.Context(), Outage{Limit: row.limit, Final: row.final, OnRetry: func(err error) {
					if retries++; err == nil {
						t.Error("got a retry without its failure")
					}
				}}, func() error {
					_, err := c.Do(t.Context(), Request{Method: http.MethodGet, Path: "/v1/x"})
					return err
				})
				if (err == nil) != row.ends || retries > row.most || (retries == 0) != (row.most == 0) {
					t.Errorf("got %v after %d retries, want an end %t after at most %d", err, retries, row.ends, row.most)
				}
				if took := time.Since(begun); took > max(row.limit, 0) {
					t.Errorf("got an end after %v, want one within %v", took, row.limit)
				}
			})
		})
	}
}

func TestRetryEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, err := New(Config{Retries: -1})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		err = c.Retry(ctx, Outage{Limit: time.Hour, OnRetry: func(error) { cancel() }}, func() error {
			return &ConnectionError{Err: io.ErrUnexpectedEOF}
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the end of the context", err)
		}
	})
}
