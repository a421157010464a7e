package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	sdk "github.com/sortie-dev/sortie/shared/sdk/go/client"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Unreachable reports a call without a complete response.
type Unreachable struct {
	// URL is the server, without path and query.
	URL string
	// Refused means that no connection was established, so the server has not received the
	// call.
	Refused bool
	cause   error
}

func (u *Unreachable) Error() string { return fmt.Sprintf("cannot reach %s: %v", u.URL, u.cause) }

// Unwrap returns the cause.
func (u *Unreachable) Unwrap() error { return u.cause }

// Problem is an error response of the server (RFC 9457).
type Problem struct {
	// Status is the HTTP status.
	Status int
	// Code is the fault's code; empty if the response has none.
	Code fault.Code
	// Message describes the failure.
	Message string
	// Field is the wrong part of the request, if any.
	Field string
	// Problems are the problems of a job document.
	Problems []contract.FieldProblem
	// CorrelationID identifies the call in the server's logs.
	CorrelationID string
	// Foreign means that the response does not come from Sortie.
	Foreign bool
}

func (p *Problem) Error() string {
	text := p.Message
	if p.Field != "" && !strings.Contains(text, p.Field) {
		text = p.Field + ": " + text
	}
	return text
}

// Gone reports whether the error says that the resource does not exist or has expired.
func Gone(err error) bool {
	p, ok := errors.AsType[*Problem](err)
	return ok && !p.Foreign && (p.Status == http.StatusNotFound || p.Status == http.StatusGone)
}

// unreachable returns an error without path and query of the URL, which may contain secrets.
func unreachable(target *url.URL, err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	u := &Unreachable{URL: target.Scheme + "://" + target.Host, cause: err}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		u.Refused, u.cause = op.Op == "dial", op.Err // op.Error repeats the address
	}
	if call, ok := errors.AsType[*os.SyscallError](u.cause); ok {
		u.cause = call.Err
	}
	return u
}

// problem returns the error response of a server.
func problem(server *url.URL, refused *sdk.Error) *Problem {
	p := &Problem{Status: refused.Status, CorrelationID: refused.CorrelationID}
	var body contract.Problem
	kind, _, _ := mime.ParseMediaType(refused.Header.Get("Content-Type"))
	if kind == "application/problem+json" || kind == "application/json" {
		if err := json.Unmarshal(refused.Body, &body); err != nil { // only the status is usable
			body = contract.Problem{}
		}
	}
	p.Code, p.Field, p.Problems = fault.Code(body.Code), body.Field, body.Problems
	if p.CorrelationID == "" {
		p.CorrelationID = body.CorrelationID
	}
	for _, text := range []string{body.Detail, body.Message, body.Title} {
		if p.Message == "" {
			p.Message = text
		}
	}
	switch {
	case p.Code == "" && refused.Status < 500 && !slices.Contains(gatewayStatuses, refused.Status):
		p.Foreign, p.Message = true, notSortie(server, refused.Status)
	case p.Message == "":
		p.Message = "the server responds with " + statusText(refused.Status)
	}
	return p
}

// gatewayStatuses are client errors that a gateway in front of Sortie sends without a code.
var gatewayStatuses = []int{
	http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestEntityTooLarge, http.StatusTooManyRequests,
}

// notSortie describes a response that does not come from Sortie.
func notSortie(server *url.URL, status int) string {
	return fmt.Sprintf("%s://%s is not a Sortie server: it responds with %s and no document of Sortie",
		server.Scheme, server.Host, statusText(status))
}

// statusText returns a status with its name, such as "404 Not Found".
func statusText(status int) string { return fmt.Sprintf("%d %s", status, http.StatusText(status)) }

// retryAfter returns the seconds of the Retry-After header. It ignores the
// header's date form, which depends on two clocks.
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil || seconds < 0 || seconds > 24*60*60 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
