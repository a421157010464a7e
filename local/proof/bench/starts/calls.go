package starts

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/fly"
	"github.com/sortie-dev/sortie/shared/port"
)

// calls is the transport to the machines API in the same process. It counts the calls and the
// 429 answers.
type calls struct {
	handler             http.Handler
	all, refused, other atomic.Int64
	creations           atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (c *calls) RoundTrip(r *http.Request) (*http.Response, error) {
	c.all.Add(1)
	answered := make(chan *recorder, 1)
	go func() {
		recorder := newRecorder()
		c.handler.ServeHTTP(recorder, r)
		answered <- recorder
	}()
	select {
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case recorder := <-answered:
		c.count(r, recorder.status)
		return &http.Response{
			StatusCode: recorder.status, Status: http.StatusText(recorder.status), Header: recorder.header, Request: r,
			Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: io.NopCloser(&recorder.body), ContentLength: int64(recorder.body.Len()),
		}, nil
	}
}

func (c *calls) count(r *http.Request, status int) {
	switch {
	case status == http.StatusTooManyRequests:
		c.refused.Add(1)
	case status == http.StatusRequestTimeout, status == http.StatusNotFound: // "not yet", and a lookup
	case status >= http.StatusBadRequest:
		c.other.Add(1)
	case r.Method == http.MethodPost && !strings.Contains(r.URL.Path, "/machines/"):
		c.creations.Add(1)
	}
}

// recorder records the answer of a handler.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func newRecorder() *recorder { return &recorder{header: http.Header{}, status: http.StatusOK} }

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }

// mark has the times of a run: its acceptance, the start and end of the call that started its
// machine, the start of its program, and the acceptance of the call started.
type mark struct {
	accepted, called, answered, program, started time.Time
	// warm means that the machine was a warm one. again means that an attempt has failed.
	warm, again bool
}

// marks has the times of all runs, by task. It is safe for concurrent use.
type marks struct {
	mu    sync.Mutex
	tasks map[string]*mark
}

func newMarks() *marks { return &marks{tasks: map[string]*mark{}} }

func (m *marks) set(task string, change func(*mark)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tasks[task] == nil {
		m.tasks[task] = &mark{}
	}
	change(m.tasks[task])
}

func (m *marks) started() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range m.tasks {
		if !one.started.IsZero() {
			n++
		}
	}
	return n
}

// timedRunner records the times of the calls that start an attempt's machine.
type timedRunner struct {
	*fly.Runner
	marks *marks
}

// Launch implements port.Runner.
func (r *timedRunner) Launch(ctx context.Context, spec port.LaunchSpec) (port.MachineStatus, error) {
	return r.note(spec, false, func() (port.MachineStatus, error) { return r.Runner.Launch(ctx, spec) })
}

// StartWarm implements port.WarmMachines.
func (r *timedRunner) StartWarm(ctx context.Context, m port.Machine, spec port.LaunchSpec) (port.MachineStatus, error) {
	return r.note(spec, true, func() (port.MachineStatus, error) { return r.Runner.StartWarm(ctx, m, spec) })
}

func (r *timedRunner) note(spec port.LaunchSpec, warm bool, call func() (port.MachineStatus, error)) (port.MachineStatus, error) {
	called := time.Now()
	status, err := call()
	if err == nil {
		r.marks.set(spec.Env["TASK_ID"], func(m *mark) { m.called, m.answered, m.warm = called, time.Now(), warm })
	}
	return status, err
}
