package worker

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// fixedAnswer is a transport that returns the same response to every call.
type fixedAnswer struct {
	status int
	after  string
	body   []byte
}

func (s fixedAnswer) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: s.status, Header: http.Header{"Retry-After": {s.after}}, Body: io.NopCloser(bytes.NewReader(s.body)),
	}, nil
}

// fixedClock is a clock that does not advance.
type fixedClock struct{ clock.Clock }

func (fixedClock) Now() time.Time { return time.Date(2025, 1, 15, 12, 0, 0, 0, time.UTC) }

// FuzzAnswer answers a heartbeat with anything. The worker keeps a valid token and
// valid URLs, and either ends for a reason of the contract or retries after a
// bounded time.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []struct {
		status      int
		after, body string
	}{
		{200, "", `{"acknowledged":true,"shouldCancel":false}`},
		{200, "", `{"shouldCancel":true,"cancelReason":"user_requested"}`},
		{200, "", `{"taskToken":"x.y.z","tokenExpiresAt":"2025-01-15T12:00:00Z","output":{"url":"https://b.test/o","key":"o"}}`},
		{200, "", `{"taskToken":"a b","output":{"url":"file:///etc"},"log":{"url":""}}`},
		{200, "", `<html>`},
		{204, "", ``},
		{302, "", ``},
		{401, "", `{}`},
		{404, "", `{}`},
		{409, "", `{"error":"task_already_terminal","state":"CANCELLED"}`},
		{409, "", `{"error":"worker_mismatch"}`},
		{409, "", `[]`},
		{410, "", `{"error":"task_expired"}`},
		{429, "17", ``},
		{503, "Wed, 15 Jan 2025 12:00:09 GMT", ``},
		{503, "-1", ``},
	} {
		f.Add(seed.status, seed.after, []byte(seed.body))
	}
	f.Fuzz(func(t *testing.T, status int, after string, body []byte) {
		if status < 100 || status > 999 {
			return
		}
		work, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		task := &Task{
			assignment: Assignment{TaskID: "t", Envelope: &contract.TaskEnvelope{TaskID: "t", Attempt: 1, CallbackBaseURL: "http://api.test"}},
			options:    Options{Clock: fixedClock{}, Log: slog.New(slog.DiscardHandler), WorkerID: "w"},
			http:       &http.Client{Transport: fixedAnswer{status, after, body}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
			timing:     timing{interval: time.Minute, timeout: 3 * time.Minute}, progress: progress{percent: -1},
			grant: contract.TokenRenewal{TaskToken: "a.b.c"}, ctx: work, cancel: cancel,
		}
		err := task.heartbeat(t.Context())
		if g := task.grant; !isToken(g.TaskToken) || g.Output != nil && !isURL(g.Output.URL) || g.Log != nil && !isURL(g.Log.URL) {
			t.Errorf("%d %q: got grant %+v, want a valid token and valid URLs", status, body, g)
		}
		failed, again := errors.AsType[*retryableError](err)
		switch ok := status >= 200 && status < 300; {
		case again && (failed.after < 0 || failed.after > maxRetryAfter):
			t.Errorf("%d %q: got a retry after %s, want 0 to %s", status, after, failed.after, maxRetryAfter)
		case err == nil != ok && !(ok && again):
			t.Errorf("%d %q: got error %v", status, body, err)
		case (abandoned(err) || errors.Is(err, ErrCancelled)) != (status == http.StatusConflict || status == http.StatusGone):
			t.Errorf("%d %q: got error %v, want one that ends the work only for 409 and 410", status, body, err)
		}
		cause := context.Cause(work)
		if task.cancelRequested != errors.Is(cause, ErrCancelled) || cause != nil && (len(cause.Error()) > 2*maxMessage || !utf8.ValidString(cause.Error())) {
			t.Errorf("%d %q: got cause %v", status, body, cause)
		}
	})
}
