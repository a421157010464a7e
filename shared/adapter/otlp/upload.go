package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	collectorpb "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/sortie-dev/sortie/shared/base/retry"
	"github.com/sortie-dev/sortie/shared/domain/trace"
)

// answerLimit is the largest part of a response that is read, in bytes.
const answerLimit = 64 << 10

// refusal is the error for a response without success.
type refusal struct {
	status int
	after  time.Duration
	text   string
}

func (r refusal) Error() string { return fmt.Sprintf("got status %d: %s", r.status, r.text) }

// retryable reports whether a failed request may succeed later, by the statuses that the
// specification lists. after is the minimum time for which the collector wants no request.
func retryable(err error) (ok bool, after time.Duration) {
	r, refused := errors.AsType[refusal](err)
	if !refused {
		return true, 0
	}
	return slices.Contains([]int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}, r.status), r.after
}

// upload sends spans in one request.
func (e *Exporter) upload(ctx context.Context, spans []trace.Span) error {
	body, err := proto.Marshal(&collectorpb.ExportTraceServiceRequest{ResourceSpans: encode(e.config.Resource, spans)})
	if err != nil {
		return fmt.Errorf("cannot encode spans: %w", err)
	}
	if e.config.Gzip {
		if body, err = compress(body); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, e.config.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.config.Endpoint, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("cannot make a request: %w", err)
	}
	if err := e.setHeaders(ctx, request.Header); err != nil {
		return err
	}
	response, err := e.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, answerLimit))
	switch {
	case response.StatusCode/100 != 2:
		return refusal{response.StatusCode, retry.After(response.Header.Get("Retry-After"), e.config.Clock.Now(), lastPause), string(text)}
	case err != nil:
		return fmt.Errorf("cannot read the response: %w", err)
	}
	var answer collectorpb.ExportTraceServiceResponse
	if err := proto.Unmarshal(text, &answer); err == nil && answer.GetPartialSuccess().GetRejectedSpans() > 0 {
		e.config.Log.WarnContext(ctx, "spans were refused", "spans", answer.GetPartialSuccess().GetRejectedSpans(), "error", cut(answer.GetPartialSuccess().GetErrorMessage()))
	}
	return nil
}

func (e *Exporter) setHeaders(ctx context.Context, h http.Header) error {
	headers := e.config.Headers
	if e.config.Secrets != nil {
		var err error
		if headers, err = e.config.Secrets(ctx); err != nil {
			return fmt.Errorf("cannot read the headers: %w", err)
		}
	}
	for name, value := range headers {
		h.Set(name, value)
	}
	h.Set("Content-Type", "application/x-protobuf")
	h.Set("User-Agent", "sortie")
	if e.config.Gzip {
		h.Set("Content-Encoding", "gzip")
	}
	return nil
}

func compress(body []byte) ([]byte, error) {
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	_, err := w.Write(body)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, fmt.Errorf("cannot compress spans: %w", err)
	}
	return compressed.Bytes(), nil
}
