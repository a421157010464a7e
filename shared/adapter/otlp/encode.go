package otlp

import (
	"maps"
	"slices"
	"strings"
	"time"

	commonpb "go.opentelemetry.io/proto/slim/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/slim/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"

	"github.com/sortie-dev/sortie/shared/domain/trace"
)

// scope is the instrumentation scope of all spans.
const scope = "github.com/sortie-dev/sortie"

// encode returns the message with spans and the attributes of the service.
func encode(service map[string]string, spans []trace.Span) []*tracepb.ResourceSpans {
	resource := &resourcepb.Resource{}
	for _, name := range slices.Sorted(maps.Keys(service)) {
		resource.Attributes = append(resource.Attributes, attribute(trace.Attribute{Name: name, Value: service[name]}))
	}
	scoped := &tracepb.ScopeSpans{Scope: &commonpb.InstrumentationScope{Name: scope}}
	for _, s := range spans {
		scoped.Spans = append(scoped.Spans, encodeSpan(s))
	}
	return []*tracepb.ResourceSpans{{Resource: resource, ScopeSpans: []*tracepb.ScopeSpans{scoped}}}
}

func encodeSpan(s trace.Span) *tracepb.Span {
	span := &tracepb.Span{
		TraceId: s.Trace[:], SpanId: s.ID[:], Name: s.Name, Kind: tracepb.Span_SPAN_KIND_INTERNAL,
		StartTimeUnixNano: nanoseconds(s.Start), EndTimeUnixNano: nanoseconds(s.End),
		Attributes: attributes(s.Attributes), Status: &tracepb.Status{}, Flags: uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK) | sampled,
	}
	if s.Parent != (trace.SpanID{}) {
		span.ParentSpanId = s.Parent[:]
	}
	if s.Server {
		span.Kind = tracepb.Span_SPAN_KIND_SERVER
		span.Flags |= uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK)
	}
	if s.Failed {
		span.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: s.Message}
	}
	for _, e := range s.Events {
		span.Events = append(span.Events, &tracepb.Span_Event{
			TimeUnixNano: nanoseconds(e.At), Name: e.Name, Attributes: attributes(e.Attributes),
		})
	}
	return span
}

// sampled is the flag of W3C Trace Context. Only sampled spans are exported.
const sampled = 1

// nanoseconds returns a time as Unix nanoseconds, and 0 for a time before 1970.
func nanoseconds(t time.Time) uint64 { return uint64(max(t.UnixNano(), 0)) } //nolint:gosec // not negative

func attributes(list []trace.Attribute) []*commonpb.KeyValue {
	encoded := make([]*commonpb.KeyValue, len(list))
	for i, a := range list {
		encoded[i] = attribute(a)
	}
	return encoded
}

func attribute(a trace.Attribute) *commonpb.KeyValue {
	value := &commonpb.AnyValue{}
	switch v := a.Value.(type) {
	case int64:
		value.Value = &commonpb.AnyValue_IntValue{IntValue: v}
	case string:
		value.Value = &commonpb.AnyValue_StringValue{StringValue: strings.ToValidUTF8(v, "\uFFFD")}
	}
	return &commonpb.KeyValue{Key: a.Name, Value: value}
}
