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

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/livelog"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// problemType is the content type of problem documents (RFC 9457).
const problemType = "application/problem+json"

// Problem is an error response. It implements error, so that a handler can return it with
// additional fields. ProblemOf creates it.
type Problem struct {
	// Body is the response body. Instance and CorrelationID are set when it is written.
	Body contract.Problem
	// Header has additional response headers.
	Header http.Header

	cause error
	// unrouted: no route matches the request.
	unrouted bool
}

// ProblemOf returns the problem for the code of the fault in err. If err is or wraps a Problem,
// it returns that Problem. An exceeded deadline becomes Unavailable.
func ProblemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	f, told := errors.AsType[*fault.Fault](err)
	switch {
	case told:
	case errors.Is(err, context.DeadlineExceeded):
		f = fault.Wrap(err, fault.Unavailable, "request timed out; retry it")
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
			Type:  problemURN(string(f.Code)),
			Title: a.title, Status: a.status, Detail: f.Message,
			Code: string(f.Code), Retryable: f.Retryable, Field: f.Field,
		},
		Header: http.Header{}, cause: cause,
	}
	if a.word != "" {
		p.Body.Error, p.Body.Message = a.word, f.Message
	}
	if refusal, ok := errors.AsType[*runs.Refusal](cause); ok {
		p.Body.ExpectedAttempt, p.Body.ReceivedAttempt = refusal.ExpectedAttempt, refusal.ReceivedAttempt
		p.Body.State = string(refusal.State)
	}
	if gap, ok := errors.AsType[*livelog.Gap](cause); ok {
		p.Body.ExpectedSequence = gap.Want
	}
	if wrong, ok := errors.AsType[*job.DefinitionProblems](cause); ok {
		for _, each := range wrong.Problems {
			p.Body.Problems = append(p.Body.Problems, contract.FieldProblem{Field: each.Field, Line: each.Line, Problem: each.Problem})
		}
	}
	if a.status == http.StatusUnauthorized {
		p.Header.Set("WWW-Authenticate", `Bearer realm="sortie"`)
	}
	if a.status == http.StatusTooManyRequests {
		p.Body.PolicyLabel, p.Body.Retriable, p.Body.RetryAfterMS = "reject", &f.Retryable, a.backoff.Milliseconds()
	}
	missing, short := errors.AsType[*port.NoBudget](cause)
	if short && missing.Wait > 0 {
		a.backoff, p.Body.RetryAfterMS = missing.Wait, missing.Wait.Milliseconds()
	}
	if !f.Retryable && (short || a.backoff > 0) { // waiting does not help
		p.Header.Set("X-Should-Retry", "false")
		if a.backoff > 0 {
			a.backoff = finalBackoff
		}
	}
	if short && f.Code == fault.AdmissionReject {
		p.Body.Title, p.Body.PolicyLabel, p.Body.RetryAfterMS = "No budget left", "budget", a.backoff.Milliseconds()
	}
	if a.backoff > 0 {
		p.Header.Set("Retry-After", strconv.Itoa(int((a.backoff+time.Second-1)/time.Second)))
		p.Header.Set("X-Backoff-Ms", strconv.FormatInt(a.backoff.Milliseconds(), 10))
	}
	return p
}

// finalBackoff is the Retry-After of a refusal that only a change of the budget or the model
// can end.
const finalBackoff = time.Minute

// problemURN returns the problem type for a code.
func problemURN(code string) string {
	return "urn:sortie:problem:" + strings.ToLower(strings.ReplaceAll(code, "_", "-"))
}

// onlyHTTP returns a problem whose code is specific to HTTP.
func onlyHTTP(code fault.Code, field, detail string) *Problem {
	f := &fault.Fault{Code: code, Blame: fault.BlameClient, Message: detail, Field: field}
	return problemOf(f, f)
}

// PreconditionFailed returns the problem for a failed If-Match (412).
func PreconditionFailed(detail string) *Problem {
	return onlyHTTP(fault.PreconditionFailed, "If-Match", detail)
}

// RangeNotSatisfiable returns the problem for a Range outside of a content of size bytes (416).
func RangeNotSatisfiable(size int64) *Problem {
	p := onlyHTTP(codeRange, "Range", "the content has "+strconv.FormatInt(size, 10)+" bytes")
	p.Header.Set("Content-Range", "bytes */"+strconv.FormatInt(size, 10))
	return p
}

// UpgradeRequired returns the problem for a request that is not a WebSocket handshake (426).
func UpgradeRequired(detail string) *Problem {
	p := onlyHTTP(codeUpgrade, "Upgrade", detail)
	p.Header.Set("Upgrade", "websocket")
	p.Header.Set("Connection", "Upgrade")
	return p
}

// Error returns the text of the cause, or code and detail without a cause. It is for the log.
func (p *Problem) Error() string {
	if p.cause != nil {
		return p.cause.Error()
	}
	return p.Body.Code + ": " + p.Body.Detail
}

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.cause }

// WriteProblem writes the problem for err outside of a handler from New. It is for adapters
// that transport requests and responses.
func WriteProblem(w http.ResponseWriter, r *http.Request, err error) {
	ProblemOf(err).write(w, r, strings.TrimSpace(r.Header.Get("X-Correlation-Id")))
}

// write sends the problem as the response. It omits an invalid correlation id.
func (p *Problem) write(w http.ResponseWriter, r *http.Request, correlationID string) {
	body := p.Body
	body.Instance = r.URL.EscapedPath()
	if saneID(correlationID) {
		body.CorrelationID = correlationID
	}
	if p.unrouted && isOpenAIPath(r) {
		p.send(w, body.Status, problemType, NewUnknownPath(body))
		return
	}
	p.send(w, body.Status, problemType, body)
}

// writeAs sends the problem in the shape of another API.
func (p *Problem) writeAs(w http.ResponseWriter, shape ErrorShape) {
	status, more, body := shape(p)
	maps.Copy(w.Header(), more)
	p.send(w, status, TypeJSON, body)
}

func (p *Problem) send(w http.ResponseWriter, status int, contentType string, body any) {
	// Remove the headers that the handler set for its own response.
	header := w.Header()
	for _, name := range []string{"Content-Disposition", "ETag", "Accept-Ranges", "Content-Range", "Location"} {
		header.Del(name)
	}
	maps.Copy(header, p.Header)
	text, err := json.Marshal(body)
	if err != nil { // cannot fail: a struct of strings and numbers
		text = []byte(`{}`)
	}
	header.Set("Content-Type", contentType)
	header.Set("Content-Length", strconv.Itoa(len(text)))
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(text) // an error means that the client has disconnected
}
