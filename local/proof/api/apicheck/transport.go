package apicheck

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Transport returns a round tripper that checks every exchange of next and calls report for
// each violation. It does not change responses. It is safe for concurrent use if report is.
func (d *Document) Transport(next http.RoundTripper, report func(error)) http.RoundTripper {
	return &transport{document: d, next: next, report: report}
}

type transport struct {
	document *Document
	next     http.RoundTripper
	report   func(error)
}

// RoundTrip sends the request and checks the exchange. It first reads the request body into
// memory.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent []byte
	if r.Body != nil {
		var err error
		sent, err = io.ReadAll(r.Body)
		if err = errors.Join(err, r.Body.Close()); err != nil {
			return nil, fmt.Errorf("cannot read the body for %s: %w", r.URL.Path, err)
		}
		sending := *r
		sending.Body = io.NopCloser(bytes.NewReader(sent))
		r = &sending
	}
	answer, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("cannot call %s: %w", r.URL.Path, err)
	}
	if err := t.document.Check(r, answer); err != nil {
		t.report(err)
	}
	if answer.StatusCode < http.StatusMultipleChoices && len(sent) > 0 {
		if err := t.document.CheckRequest(r, sent); err != nil {
			t.report(err)
		}
	}
	return answer, nil
}
