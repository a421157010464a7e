package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/fault"
)

// Unreachable is a call that got no answer, or not the whole of it.
type Unreachable struct {
	// URL is the server, without path and query.
	URL string
	// Refused says that no connection could be made: the server did not see the
	// call.
	Refused bool
	cause   error
}

func (u *Unreachable) Error() string { return fmt.Sprintf("cannot reach %s: %v", u.URL, u.cause) }

// Unwrap gives the cause.
func (u *Unreachable) Unwrap() error { return u.cause }

// Problem is an answer that is an error, as RFC 9457 writes it.
type Problem struct {
	// Status is the HTTP status.
	Status int
	// Code is the fault's; empty where the answer had none, as a proxy's.
	Code fault.Code
	// Message says for people what happened.
	Message string
	// Field is the part of the request that is wrong; empty where none is.
	Field string
	// CorrelationID finds the call in the server's logs.
	CorrelationID string
	// RetryAfter is how long the server wants to be left alone; 0 where it does
	// not say.
	RetryAfter time.Duration
}

func (p *Problem) Error() string {
	text := p.Message
	if p.Field != "" && !strings.Contains(text, p.Field) {
		text = p.Field + ": " + text
	}
	return text
}

// Gone says whether the error is the server's word that the thing never was,
// or is no more.
func Gone(err error) bool {
	p, ok := errors.AsType[*Problem](err)
	return ok && (p.Status == http.StatusNotFound || p.Status == http.StatusGone)
}

// unreachable names the failure of a call without its path and query, which
// may be secrets.
func unreachable(target *url.URL, err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	u := &Unreachable{URL: target.Scheme + "://" + target.Host, cause: err}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		u.Refused, u.cause = op.Op == "dial", op.Err // the address stands in URL
	}
	return u
}

// problemLimit bounds what is read of an answer that is an error, in bytes.
const problemLimit = 64 << 10

// problem reads an answer that is an error.
func problem(resp *http.Response) error {
	p := &Problem{
		Status: resp.StatusCode, CorrelationID: resp.Header.Get("X-Correlation-Id"), RetryAfter: retryAfter(resp.Header),
	}
	var body contract.Problem
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	text, err := io.ReadAll(io.LimitReader(resp.Body, problemLimit))
	if err == nil && (kind == "application/problem+json" || kind == "application/json") {
		err = json.Unmarshal(text, &body)
	}
	if err != nil { // the status speaks for itself
		body = contract.Problem{}
	}
	p.Code, p.Field = fault.Code(body.Code), body.Field
	if p.CorrelationID == "" {
		p.CorrelationID = body.CorrelationID
	}
	for _, words := range []string{body.Detail, body.Message, body.Title} {
		if p.Message == "" {
			p.Message = words
		}
	}
	if p.Message == "" {
		p.Message = fmt.Sprintf("the server answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	return p
}

// retryAfter reads the header's seconds. Its other form, a date, is of no use
// between two clocks.
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil || seconds < 0 || seconds > 24*60*60 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
