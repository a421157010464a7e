package apicheck

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Transport checks every exchange that goes through next, and tells tell what
// does not fit. The client sees each answer as it is. It may be called from
// many goroutines, and so may tell.
func (d *Document) Transport(next http.RoundTripper, tell func(error)) http.RoundTripper {
	return &transport{document: d, next: next, tell: tell}
}

type transport struct {
	document *Document
	next     http.RoundTripper
	tell     func(error)
}

// RoundTrip passes the request on. It reads the request's body first, so it is
// not for bodies that do not fit into memory.
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
		t.tell(err)
	}
	if answer.StatusCode < http.StatusMultipleChoices && len(sent) > 0 {
		if err := t.document.CheckRequest(r, sent); err != nil {
			t.tell(err)
		}
	}
	return answer, nil
}
