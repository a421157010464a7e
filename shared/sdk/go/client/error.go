package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/sortie-dev/sortie/shared/sdk/go/api"
)

// The classes of refused requests. errors.Is reports whether an *Error belongs to one.
var (
	// ErrInvalid: the request is malformed or not allowed as it is (400, 422 and others).
	ErrInvalid = errors.New("invalid request")
	// ErrUnauthenticated: the token is missing or not valid (401).
	ErrUnauthenticated = errors.New("unauthenticated")
	// ErrForbidden: the token does not permit the request (403).
	ErrForbidden = errors.New("forbidden")
	// ErrNotFound: there is no such resource, or no longer (404, 410).
	ErrNotFound = errors.New("not found")
	// ErrConflict: the resource is in another state (409).
	ErrConflict = errors.New("conflict")
	// ErrPreconditionFailed: the resource has another version (412, 428).
	ErrPreconditionFailed = errors.New("precondition failed")
	// ErrRateLimited: there were too many requests (429).
	ErrRateLimited = errors.New("rate limited")
	// ErrServer: the server failed (5xx).
	ErrServer = errors.New("server error")
)

// Error is the answer to a refused request.
type Error struct {
	Status int
	// Code is the code of the problem, such as api.CodeNotFound. It is empty if the answer
	// is not one of Sortie.
	Code    string
	Message string
	// CorrelationID identifies the request in the logs of the server.
	CorrelationID string
	// RetryAfter is the delay that the server asks for; 0 if it names none.
	RetryAfter time.Duration
	// Problem is the problem document; nil if the answer has none.
	Problem *api.Problem
	// Header and Body are those of the answer. Body has at most its first 1 MiB.
	Header http.Header
	Body   []byte
}

func (e *Error) Error() string {
	code := ""
	if e.Code != "" {
		code = " " + e.Code
	}
	return fmt.Sprintf("%d%s: %s", e.Status, code, e.Message)
}

// Is reports whether target is the class of e.
func (e *Error) Is(target error) bool {
	switch {
	case e.Status == http.StatusUnauthorized:
		return target == ErrUnauthenticated
	case e.Status == http.StatusForbidden:
		return target == ErrForbidden
	case e.Status == http.StatusNotFound, e.Status == http.StatusGone:
		return target == ErrNotFound
	case e.Status == http.StatusConflict:
		return target == ErrConflict
	case e.Status == http.StatusPreconditionFailed, e.Status == http.StatusPreconditionRequired:
		return target == ErrPreconditionFailed
	case e.Status == http.StatusTooManyRequests:
		return target == ErrRateLimited
	case e.Status >= http.StatusInternalServerError:
		return target == ErrServer
	case e.Status >= http.StatusBadRequest:
		return target == ErrInvalid
	}
	return false
}

// HasCode reports whether err is an *Error with this code.
func HasCode(err error, code string) bool {
	refused, ok := errors.AsType[*Error](err)
	return ok && refused.Code == code
}

// ConnectionError is the failure of a request that has no complete answer. Its text has no
// query, which may be a secret.
type ConnectionError struct {
	// Request is the method and the address.
	Request string
	Err     error
}

func (e *ConnectionError) Error() string { return e.Request + ": " + e.Err.Error() }

func (e *ConnectionError) Unwrap() error { return e.Err }

// Timeout reports whether the answer did not arrive in time.
func (e *ConnectionError) Timeout() bool { return errors.Is(e.Err, errSilent) }

// ErrorOf returns the error of an answer that is not a success. It reads the body and does not
// close it. It is for callers that send a request of Client.NewRequest.
func ErrorOf(response *http.Response) *Error {
	text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<20)) // what was read is shown
	e := &Error{
		Status: response.StatusCode, Message: http.StatusText(response.StatusCode),
		CorrelationID: response.Header.Get("X-Correlation-Id"), RetryAfter: retryAfter(response.Header),
		Header: response.Header, Body: text,
	}
	if e.Status < http.StatusBadRequest {
		e.Message = "the server redirects: check the URL"
		return e
	}
	var problem api.Problem
	if json.Unmarshal(text, &problem) == nil && problem.Code != "" {
		e.Code, e.Problem = problem.Code, &problem
		e.Message = problem.Title
		if problem.Detail != "" {
			e.Message = problem.Detail
		}
		return e
	}
	var other struct { // a route of the OpenAI API
		Error struct{ Code, Message string }
	}
	if json.Unmarshal(text, &other) == nil && other.Error.Message != "" {
		e.Code, e.Message = other.Error.Code, other.Error.Message
	}
	return e
}

func retryAfter(header http.Header) time.Duration {
	for name, unit := range map[string]time.Duration{"X-Backoff-Ms": time.Millisecond, "Retry-After": time.Second} {
		if n, err := strconv.ParseUint(header.Get(name), 10, 31); err == nil && (name == "X-Backoff-Ms" || header.Get("X-Backoff-Ms") == "") {
			return time.Duration(n) * unit
		}
	}
	return 0
}
