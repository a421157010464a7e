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

	"github.com/sortie-dev/sortie/shared/contract"
)

// saying answers every call with the same.
type saying struct {
	status int
	after  string
	body   []byte
}

func (s saying) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: s.status, Header: http.Header{"Retry-After": {s.after}}, Body: io.NopCloser(bytes.NewReader(s.body)),
	}, nil
}

// still is a clock that stands.
type still struct{ Clock }

func (still) Now() time.Time { return time.Date(2025, 1, 15, 12, 0, 0, 0, time.UTC) }

// FuzzAnswer has whatever there is at the address answer a heartbeat: the worker
// goes on with a token and with addresses that can be used, ends for a reason
// that the contract knows, or tries again in bounded time.
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
			options:    Options{Clock: still{}, Log: slog.New(slog.DiscardHandler), WorkerID: "w"},
			http:       &http.Client{Transport: saying{status, after, body}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
			pace:       pace{interval: time.Minute, timeout: 3 * time.Minute}, told: told{percent: -1},
			link: contract.TokenRenewal{TaskToken: "a.b.c"}, ctx: work, cancel: cancel,
		}
		err := task.heartbeat(t.Context())
		if link := task.link; !taskToken.MatchString(link.TaskToken) || link.Output != nil && !isAddress(link.Output.URL) || link.Log != nil && !isAddress(link.Log.URL) {
			t.Errorf("%d %q: the worker goes on with %+v", status, body, link)
		}
		failed, again := errors.AsType[*again](err)
		switch good := status >= 200 && status < 300; {
		case again && (failed.after < 0 || failed.after > longestAfter):
			t.Errorf("%d %q: it is tried again after %s", status, after, failed.after)
		case err == nil != good && !(good && again):
			t.Errorf("%d %q gives %v", status, body, err)
		case (silent(err) || errors.Is(err, ErrCancelled)) != (status == http.StatusConflict || status == http.StatusGone):
			t.Errorf("%d %q ends the work: %v", status, body, err)
		}
		cause := context.Cause(work)
		if task.wished != errors.Is(cause, ErrCancelled) || cause != nil && (len(cause.Error()) > 2*maxMessage || !utf8.ValidString(cause.Error())) {
			t.Errorf("%d %q: the work ends because of %v", status, body, cause)
		}
	})
}
