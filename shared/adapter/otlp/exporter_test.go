package otlp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"

	"github.com/sortie-dev/sortie/local/proof/port/otlptest"
	"github.com/sortie-dev/sortie/shared/adapter/otlp"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/setting"
	"github.com/sortie-dev/sortie/shared/base/setting/otel"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/trace"
)

var epoch = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

type fixture struct {
	*otlp.Exporter
	*testing.T
	receiver *otlptest.Receiver
	clock    *clock.Virtual
	log      *bytes.Buffer
}

// setup returns an exporter to a receiver, configured by variables.
func setup(t *testing.T, change func(*otlp.Config), values ...string) *fixture {
	t.Helper()
	f := &fixture{T: t, receiver: otlptest.New(t), clock: clock.NewVirtual(epoch), log: &bytes.Buffer{}}
	variables := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": f.receiver.URL}
	for _, v := range values {
		name, value, _ := strings.Cut(v, "=")
		variables[name] = value
	}
	read, err := otel.Read(setting.Map(variables))
	if err != nil {
		t.Fatal(err)
	}
	config := otlp.Config{Config: read, Clock: f.clock, Log: slog.New(slog.NewTextHandler(f.log, nil))}
	if change != nil {
		change(&config)
	}
	f.Exporter = otlp.New(config)
	return f
}

// commit commits the end of run n, which failed while it was created.
func (f *fixture) commit(n int) run.Run {
	r := run.Run{
		Tenant: "default", ID: fmt.Sprintf("run-%d", n), TaskID: "t", State: run.Failed, CreatedAt: epoch, EnteredAt: epoch.Add(time.Second),
		Trigger: run.TriggerRequest, Attempt: run.Attempt{Number: 1},
	}
	f.Committed(f.Context(), r, []run.Event{{
		ID: "e", Seq: 3, Type: run.EventFailed, At: epoch.Add(time.Second), From: run.Pending, State: run.Failed, Attempt: 1,
		Message: "a \xff", Fault: fault.New(fault.WorkerLost, "it is gone"),
	}})
	return r
}

func TestSpansAreSentAsProtobuf(t *testing.T) {
	t.Parallel()
	f := setup(t, func(c *otlp.Config) { c.Version = "v1" }, "OTEL_EXPORTER_OTLP_HEADERS=api-key=secret%20key", "OTEL_EXPORTER_OTLP_COMPRESSION=gzip",
		"OTEL_RESOURCE_ATTRIBUTES=deployment.environment=prod")
	r := f.commit(1)
	f.Flush(t.Context())
	requests := f.receiver.Requests()
	if len(requests) != 1 || requests[0].URL.Path != "/v1/traces" || requests[0].Header.Get("Api-Key") != "secret key" || requests[0].Header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("got requests %v, want one to /v1/traces with the header", requests)
	}
	if diff := cmp.Diff(map[string]string{"service.name": "sortie", "service.version": "v1", "deployment.environment": "prod"}, f.receiver.Service()); diff != "" {
		t.Error(diff)
	}
	spans := f.receiver.Spans()
	if diff := cmp.Diff([]string{"Pending", "run"}, spans.Names()); diff != "" {
		t.Fatal(diff)
	}
	whole, state, want := spans[1], spans[0], trace.Of(r)
	if otlptest.TraceParent(whole) != want.String() || !bytes.Equal(state.GetParentSpanId(), whole.GetSpanId()) || len(state.GetEvents()) != 1 ||
		state.GetEvents()[0].GetName() != string(run.EventFailed) || otlptest.Attribute(state.GetEvents()[0].GetAttributes(), "message") != "a \uFFFD" {
		t.Errorf("got %v and %v, want the run %s and its state with an event", whole, state, want)
	}
	if whole.GetStatus().GetCode() != tracepb.Status_STATUS_CODE_ERROR || whole.GetStatus().GetMessage() != "it is gone" ||
		whole.GetStartTimeUnixNano() != uint64(epoch.UnixNano()) || whole.GetEndTimeUnixNano()-whole.GetStartTimeUnixNano() != uint64(time.Second) {
		t.Errorf("got %v, want a failed second", whole)
	}
	f.Flush(t.Context())
	if got := f.receiver.Requests(); len(got) != 1 {
		t.Errorf("got %d requests, want none for an empty queue", len(got))
	}
}

// TestFailedBatchIsSentAgain also checks that a pause follows the failure.
func TestFailedBatchIsSentAgain(t *testing.T) {
	t.Parallel()
	f := setup(t, nil)
	f.receiver.Fail(2)
	f.commit(1)
	f.Flush(t.Context())
	f.Flush(t.Context())
	if got := len(f.receiver.Requests()); got != 1 {
		t.Fatalf("got %d requests in the pause, want 1", got)
	}
	for range 2 {
		f.clock.Advance(2 * time.Second)
		f.Flush(t.Context())
	}
	if got := f.receiver.Spans(); len(got) != 2 || f.Dropped() != 0 {
		t.Errorf("got %d spans, want 2 once and nothing dropped", len(got))
	}
}

func TestBatchThatFailsIsDropped(t *testing.T) {
	t.Parallel()
	f := setup(t, nil)
	f.receiver.Fail(5)
	f.commit(1)
	for range 6 {
		f.Flush(t.Context())
		f.clock.Advance(time.Minute)
	}
	if got := len(f.receiver.Requests()); got != 5 || f.Dropped() != 1 {
		t.Errorf("got %d requests, want 5 and a dropped commit", got)
	}
	if n := strings.Count(f.log.String(), "cannot be exported"); n != 5 {
		t.Errorf("got %d lines about failures, want 5", n)
	}
	f.commit(2)
	f.Flush(t.Context())
	if got := f.receiver.Spans(); len(got) != 2 {
		t.Errorf("got %d spans after the failures, want 2", len(got))
	}
}

// TestRefusedBatchIsDropped uses a collector that requires another key, and one that redirects.
func TestRefusedBatchIsDropped(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusUnauthorized, http.StatusPermanentRedirect} {
		f := setup(t, nil)
		f.receiver.Answer = func(w http.ResponseWriter) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
		}
		f.commit(1)
		f.Flush(t.Context())
		if got := len(f.receiver.Requests()); got != 1 || f.Dropped() != 1 {
			t.Errorf("%d: got %d requests, want 1 and a dropped commit", status, got)
		}
	}
}

func TestRetryAfterIsHonored(t *testing.T) {
	t.Parallel()
	f := setup(t, nil)
	f.receiver.Answer = func(w http.ResponseWriter) {
		w.Header().Set("Retry-After", "20")
		w.WriteHeader(http.StatusTooManyRequests)
	}
	f.commit(1)
	for _, want := range []int{1, 1, 2} {
		f.Flush(t.Context())
		if got := len(f.receiver.Requests()); got != want {
			t.Errorf("got %d requests, want %d", got, want)
		}
		f.clock.Advance(11 * time.Second)
	}
}

// TestFullQueueDropsCommits commits to an exporter whose receiver never responds. No call
// blocks.
func TestFullQueueDropsCommits(t *testing.T) {
	t.Parallel()
	answer := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-answer }))
	defer silent.Close()
	defer close(answer)
	f := setup(t, nil, "OTEL_EXPORTER_OTLP_ENDPOINT="+silent.URL)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); f.Exporter.Run(ctx) }()
	for i := range 5000 {
		f.commit(i)
	}
	if n := f.Dropped(); n != 5000-4096 {
		t.Errorf("got %d dropped commits, want %d", n, 5000-4096)
	}
	cancel()
	<-ended
}

// TestRunSendsWhatIsCommitted also checks that it repeats a failed request by itself.
func TestRunSendsWhatIsCommitted(t *testing.T) {
	t.Parallel()
	f := setup(t, nil)
	f.receiver.Fail(1)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); f.Exporter.Run(ctx) }()
	f.commit(1)
	for len(f.receiver.Spans()) == 0 {
		f.clock.Advance(time.Second)
		runtime.Gosched()
	}
	for i := range 300 {
		f.commit(2 + i)
	}
	f.receiver.Await(func(spans otlptest.Spans) bool { return len(spans) == 602 })
	cancel()
	<-ended
}

// TestCancelledRequestIsSentAgain simulates a process that stops. Run returns, and the last
// Flush sends the remaining commits.
func TestCancelledRequestIsSentAgain(t *testing.T) {
	t.Parallel()
	called, f := make(chan struct{}), (*fixture)(nil)
	hang := true
	f = setup(t, func(c *otlp.Config) {
		c.Secrets = func(ctx context.Context) (map[string]string, error) {
			if hang {
				hang = false
				close(called)
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return map[string]string{}, nil
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); f.Exporter.Run(ctx) }()
	f.commit(1)
	<-called
	cancel()
	<-ended
	f.Flush(t.Context())
	if got := f.receiver.Spans(); len(got) != 2 {
		t.Errorf("got %d spans, want 2", len(got))
	}
}

func TestRunThatIsNotSampledIsNotSent(t *testing.T) {
	t.Parallel()
	f := setup(t, nil, "OTEL_TRACES_SAMPLER=always_off")
	f.commit(1)
	f.Committed(t.Context(), run.Run{}, nil)
	f.Flush(t.Context())
	if got := len(f.receiver.Requests()); got != 0 {
		t.Errorf("got %d requests, want none", got)
	}
}

func TestHeadersOfASecret(t *testing.T) {
	t.Parallel()
	headers, failure := map[string]string{"Api-Key": "one"}, error(nil)
	f := setup(t, func(c *otlp.Config) {
		c.Secrets = func(context.Context) (map[string]string, error) { return headers, failure }
	})
	f.commit(1)
	f.Flush(t.Context())
	headers = map[string]string{"Api-Key": "two"}
	f.commit(2)
	f.Flush(t.Context())
	failure = errors.New("no secret")
	f.commit(3)
	f.Flush(t.Context())
	var got []string
	for _, r := range f.receiver.Requests() {
		got = append(got, r.Header.Get("Api-Key"))
	}
	if strings.Join(got, " ") != "one two" || !strings.Contains(f.log.String(), "no secret") || strings.Contains(f.log.String(), "two") {
		t.Errorf("got keys %v and log %s, want one two, and a failure without a value", got, f.log)
	}
}
