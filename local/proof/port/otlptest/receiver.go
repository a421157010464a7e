// Package otlptest has a receiver of OTLP over HTTP for tests.
package otlptest

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	collectorpb "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/slim/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Receiver decodes and stores the requests that it receives. It is safe for concurrent use.
type Receiver struct {
	// URL is the endpoint, without a path.
	URL string
	// Answer, if set, writes the response to all requests, which are refused. nil accepts them.
	Answer func(http.ResponseWriter)

	t        *testing.T
	mu       sync.Mutex
	fails    int
	requests []*http.Request
	service  map[string]string
	spans    []*tracepb.Span
	changed  chan struct{}
}

// New returns a Receiver that serves until the end of the test.
func New(t *testing.T) *Receiver {
	t.Helper()
	r := &Receiver{t: t, changed: make(chan struct{})}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.URL = server.URL
	return r
}

// Fail refuses the next n requests with 503.
func (r *Receiver) Fail(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fails = n
}

// ServeHTTP implements http.Handler.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body := io.Reader(request.Body)
	if request.Header.Get("Content-Encoding") == "gzip" {
		var err error
		if body, err = gzip.NewReader(body); err != nil {
			r.t.Errorf("got a body that is not compressed: %v", err)
		}
	}
	text, err := io.ReadAll(body)
	var message collectorpb.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(text, &message)
	}
	if err != nil || request.Header.Get("Content-Type") != "application/x-protobuf" || request.Method != http.MethodPost {
		r.t.Errorf("got %s %s of type %s (%v), want a POST of protobuf", request.Method, request.URL, request.Header.Get("Content-Type"), err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() {
		close(r.changed)
		r.changed = make(chan struct{})
	}()
	r.requests = append(r.requests, request)
	if r.Answer != nil {
		r.Answer(w)
		return
	}
	if r.fails > 0 {
		r.fails--
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	for _, of := range message.GetResourceSpans() {
		r.service = map[string]string{}
		for _, a := range of.GetResource().GetAttributes() {
			r.service[a.GetKey()] = a.GetValue().GetStringValue()
		}
		for _, scoped := range of.GetScopeSpans() {
			r.spans = append(r.spans, scoped.GetSpans()...)
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// Requests returns all requests, including refused ones.
func (r *Receiver) Requests() []*http.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.requests)
}

// Service returns the attributes of the service.
func (r *Receiver) Service() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.service
}

// Spans returns the spans in the order of their arrival.
func (r *Receiver) Spans() Spans {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.spans)
}

// Await waits until the condition is true, which it checks after each request, and returns
// the spans.
func (r *Receiver) Await(condition func(Spans) bool) Spans {
	r.t.Helper()
	for {
		r.mu.Lock()
		spans, changed := Spans(slices.Clone(r.spans)), r.changed
		r.mu.Unlock()
		if condition(spans) {
			return spans
		}
		select {
		case <-changed:
		case <-r.t.Context().Done():
			r.t.Fatalf("got spans %s, want others", spans)
		}
	}
}

// Spans are received spans.
type Spans []*tracepb.Span

// Named returns the spans with a name.
func (s Spans) Named(name string) Spans {
	return slices.DeleteFunc(slices.Clone(s), func(span *tracepb.Span) bool { return span.GetName() != name })
}

// Of returns the spans with a value of an attribute.
func (s Spans) Of(attribute, value string) Spans {
	return slices.DeleteFunc(slices.Clone(s), func(span *tracepb.Span) bool { return Attribute(span.GetAttributes(), attribute) != value })
}

// Names returns the names of the spans.
func (s Spans) Names() []string {
	var names []string
	for _, span := range s {
		names = append(names, span.GetName())
	}
	return names
}

// Attribute returns the text of an attribute, or "" without it.
func Attribute(list []*commonpb.KeyValue, name string) string {
	for _, a := range list {
		if a.GetKey() == name {
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}

// TraceParent returns the W3C trace context of a span.
func TraceParent(s *tracepb.Span) string {
	return "00-" + hex.EncodeToString(s.GetTraceId()) + "-" + hex.EncodeToString(s.GetSpanId()) + "-01"
}
