package httpkit

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

// problemType is the content type of RFC 9457.
const problemType = "application/problem+json"

// Problem is the answer to a request that is not granted. It is an error, so
// that a handler can return one with what its contract adds; ProblemOf makes
// them.
type Problem struct {
	// Body is what the client reads. Whoever answers fills in Instance and
	// CorrelationID.
	Body contract.Problem
	// Header goes with it.
	Header http.Header

	cause error
}

// ProblemOf makes the problem that err stands for, by its fault's code. An err
// that is or wraps a Problem is that Problem. A deadline that passed is
// Unavailable.
func ProblemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	f, told := errors.AsType[*fault.Fault](err)
	switch {
	case told:
	case errors.Is(err, context.DeadlineExceeded):
		f = fault.Wrap(err, fault.Unavailable, "the answer took too long; try again")
	default:
		f = fault.Of(err)
	}
	return problemOf(err, f)
}

func problemOf(cause error, f *fault.Fault) *Problem {
	a, known := answers[f.Code]
	if !known {
		f = fault.Of(errors.New(f.Error()))
		a = answers[f.Code]
	}
	p := &Problem{
		Body: contract.Problem{
			Type:  "urn:sortie:problem:" + strings.ToLower(strings.ReplaceAll(string(f.Code), "_", "-")),
			Title: a.title, Status: a.status, Detail: f.Message,
			Code: string(f.Code), Retryable: f.Retryable, Field: f.Field,
		},
		Header: http.Header{}, cause: cause,
	}
	if a.word != "" {
		p.Body.Error, p.Body.Message = a.word, f.Message
	}
	if refusal, ok := errors.AsType[*orchestrator.Refusal](cause); ok {
		p.Body.ExpectedAttempt, p.Body.ReceivedAttempt = refusal.ExpectedAttempt, refusal.ReceivedAttempt
		p.Body.State = string(refusal.State)
	}
	if a.status == http.StatusUnauthorized {
		p.Header.Set("WWW-Authenticate", `Bearer realm="sortie"`)
	}
	if a.backoff > 0 {
		p.Header.Set("Retry-After", strconv.Itoa(int((a.backoff+time.Second-1)/time.Second)))
		p.Header.Set("X-Backoff-Ms", strconv.FormatInt(a.backoff.Milliseconds(), 10))
	}
	return p
}

// onlyHTTP makes a problem of a failure that only HTTP knows.
func onlyHTTP(code fault.Code, field, detail string) *Problem {
	f := &fault.Fault{Code: code, Blame: fault.BlameClient, Message: detail, Field: field}
	return problemOf(f, f)
}

// PreconditionFailed is the answer to an If-Match of something else (412).
func PreconditionFailed(detail string) *Problem {
	return onlyHTTP(codePrecondition, "If-Match", detail)
}

// RangeNotSatisfiable is the answer to a Range outside of size bytes (416).
func RangeNotSatisfiable(size int64) *Problem {
	p := onlyHTTP(codeRange, "Range", "the output has "+strconv.FormatInt(size, 10)+" bytes")
	p.Header.Set("Content-Range", "bytes */"+strconv.FormatInt(size, 10))
	return p
}

// Error gives code and detail, and the cause for the log.
func (p *Problem) Error() string {
	if p.cause != nil {
		return p.cause.Error()
	}
	return p.Body.Code + ": " + p.Body.Detail
}

// Unwrap gives what the problem was made of.
func (p *Problem) Unwrap() error { return p.cause }

// WriteProblem answers with the problem that err stands for, outside of what New
// serves: for whoever carries its requests and answers.
func WriteProblem(w http.ResponseWriter, r *http.Request, err error) {
	ProblemOf(err).write(w, r, strings.TrimSpace(r.Header.Get("X-Correlation-Id")))
}

// write sends the problem as the answer. An id that is not sane is left out.
func (p *Problem) write(w http.ResponseWriter, r *http.Request, correlationID string) {
	body := p.Body
	body.Instance = r.URL.EscapedPath()
	if saneID(correlationID) {
		body.CorrelationID = correlationID
	}
	// What a handler has already said about its answer is not about this one.
	header := w.Header()
	for _, name := range []string{"Content-Disposition", "ETag", "Accept-Ranges", "Content-Range", "Location"} {
		header.Del(name)
	}
	maps.Copy(header, p.Header)
	text, err := json.Marshal(body)
	if err != nil { // a struct of strings and numbers
		text = []byte(`{}`)
	}
	header.Set("Content-Type", problemType)
	header.Set("Content-Length", strconv.Itoa(len(text)))
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(body.Status)
	_, _ = w.Write(text) // the client is gone; there is nobody to tell
}
