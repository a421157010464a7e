package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sortie-dev/sortie/shared/sdk/go/worker"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

const (
	firstToken  = "first.secret-token"
	secondToken = "second.secret-token"
	outputURL   = "http://bucket.test/exports/task-1/o.xml?X-Signature=secret"
	logURL      = "http://bucket.test/logs/task-1?X-Signature=secret"
)

// request is one call that the control plane or the bucket received.
type request struct {
	at     time.Time
	what   string // started, heartbeat, completed, callback, or the key that was put
	token  string
	header http.Header
	body   []byte
}

func as[T any](t *testing.T, r request) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(r.body, &v); err != nil {
		t.Fatalf("%s: %v", r.what, err)
	}
	return v
}

// plane is a control plane and a bucket without a network. on replaces its responses by the
// name of the call and the number of earlier calls of that name.
type plane struct {
	mu     sync.Mutex
	calls  []request
	answer map[string]func(n int) *http.Response
}

func newPlane() *plane { return &plane{answer: map[string]func(int) *http.Response{}} }

var errDown = errors.New("connection refused")

func (p *plane) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
	}
	h := request{
		at: time.Now(), what: path.Base(req.URL.Path), header: req.Header, body: body,
		token: strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer "),
	}
	p.mu.Lock()
	n := len(p.among(h.what))
	p.calls = append(p.calls, h)
	answer := p.answer[h.what]
	p.mu.Unlock()
	if answer == nil {
		return reply(http.StatusOK, `{"acknowledged":true,"shouldCancel":false,"finalState":"SUCCEEDED","serverTime":"2025-01-15T10:00:01Z"}`), nil
	}
	resp := answer(n)
	if resp == nil {
		return nil, errDown
	}
	if resp.StatusCode == hang {
		<-req.Context().Done()
		return nil, context.Cause(req.Context())
	}
	return resp, nil
}

// hang means an answer that never arrives.
const hang = 999

func reply(status int, body string, headers ...string) *http.Response {
	r := httptest.NewRecorder()
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header().Set(headers[i], headers[i+1])
	}
	r.WriteHeader(status)
	_, _ = r.WriteString(body)
	return r.Result()
}

// always returns the same answer to every call.
func always(status int, body string) func(int) *http.Response {
	return func(int) *http.Response { return reply(status, body) }
}

// on sets the answers to the calls of one name.
func (p *plane) on(what string, answer func(n int) *http.Response) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer[what] = answer
}

func (p *plane) among(what string) []request {
	var list []request
	for _, c := range p.calls {
		if c.what == what {
			list = append(list, c)
		}
	}
	return list
}

// of returns the calls of one name so far.
func (p *plane) of(what string) []request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.among(what)
}

// one returns the only call of its name.
func (p *plane) one(t *testing.T, what string) request {
	t.Helper()
	list := p.of(what)
	if len(list) != 1 {
		t.Fatalf("got %d calls of %s, want 1", len(list), what)
	}
	return list[0]
}

// fixture is a control plane and the options of a worker under a fake clock.
type fixture struct {
	t          *testing.T
	plane      *plane
	log        *bytes.Buffer
	terminate  func()
	options    worker.Options
	assignment worker.Assignment
}

// simulate runs a test with a fake clock and checks that the log contains no
// secret.
func simulate(t *testing.T, test func(s *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p, log, terminated := newPlane(), &bytes.Buffer{}, make(chan struct{})
		s := &fixture{
			t: t, plane: p, log: log, terminate: sync.OnceFunc(func() { close(terminated) }),
			options: worker.Options{
				HTTP: &http.Client{Transport: p}, Log: slog.New(slog.NewTextHandler(log, nil)),
				WorkerID: "worker-1", Terminated: terminated, Jitter: func() float64 { return 0.5 },
			},
			assignment: worker.Assignment{TaskID: "task-1", Envelope: new(envelope())},
		}
		test(s)
		for _, secret := range []string{"secret", "http://"} {
			if strings.Contains(log.String(), secret) {
				t.Errorf("got a secret in the log:\n%s", log)
			}
		}
	})
}

func envelope() contract.TaskEnvelope {
	return contract.TaskEnvelope{
		TaskID: "task-1", RunID: "run-1", TenantID: "default", WorkspaceID: "default", Attempt: 2,
		CallbackBaseURL: "http://plane.test/", TaskToken: firstToken,
		HeartbeatIntervalMS: 30_000, HeartbeatTimeoutMS: 90_000, CancelGracePeriodMS: 30_000,
		Output: &contract.Upload{URL: outputURL, Key: "exports/task-1/o.xml", Headers: map[string]string{"X-Amz-Acl": "private"}},
		Log:    &contract.Upload{URL: logURL, Key: "logs/task-1"},
	}
}

func (s *fixture) run(work worker.Func) error {
	return worker.Run(s.t.Context(), s.assignment, s.options, work)
}

// lasting returns work that takes d, unless its context ends.
func lasting(d time.Duration) worker.Func {
	return func(ctx context.Context, _ *worker.Task) (worker.Result, error) {
		select {
		case <-time.After(d):
			return worker.Result{}, nil
		case <-ctx.Done():
			return worker.Result{}, context.Cause(ctx)
		}
	}
}

// completed returns the body of the only completed.
func (s *fixture) completed() contract.TaskCompleted {
	s.t.Helper()
	return as[contract.TaskCompleted](s.t, s.plane.one(s.t, "completed"))
}
