package engine

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/base/hook/guard"
	"github.com/sortie-dev/sortie/shared/base/retry"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// The largest bodies that are read, in bytes.
const (
	largestAnswer  = 64 << 20
	largestRefusal = 16 << 10
	// longestMessage is the longest part of an engine's message that a fault contains.
	longestMessage = 500
	// longestPause is the longest pause that a server can request with Retry-After.
	longestPause = 10 * time.Minute
)

// at returns the address of a path. The base URL of a service has the version of the API.
func (e *Engine) at(path string) *url.URL {
	if e.cfg.Kind == platform.EngineOpenAI {
		path = strings.TrimPrefix(path, "/v1")
	}
	return e.base.JoinPath(path)
}

// get reads a JSON document of the server.
func (e *Engine) get(ctx context.Context, path string, into any) error {
	resp, err := e.send(ctx, e.client, http.MethodGet, e.at(path), nil)
	if err != nil {
		return err
	}
	return decode(ctx, resp, into)
}

// post sends a JSON document and reads the answer.
func (e *Engine) post(ctx context.Context, path string, body, into any) error {
	resp, err := e.send(ctx, e.client, http.MethodPost, e.at(path), body)
	if err != nil {
		return err
	}
	return decode(ctx, resp, into)
}

// decode reads a JSON answer and closes it.
func decode(ctx context.Context, resp *http.Response, into any) error {
	defer resp.Body.Close()
	err := json.NewDecoder(io.LimitReader(resp.Body, largestAnswer)).Decode(into)
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fault.Wrap(err, fault.WorkerReset, "the engine sent an answer that is not the expected JSON")
	}
	return nil
}

// send sends a request and returns the response with status 200, whose body the caller must
// close. Any other status is a fault.
func (e *Engine) send(ctx context.Context, by *http.Client, method string, to *url.URL, body any) (*http.Response, error) {
	resp, err := e.open(ctx, by, method, to, body)
	if err != nil || resp.StatusCode == http.StatusOK {
		return resp, err
	}
	defer resp.Body.Close()
	return nil, e.refused(ctx, resp)
}

// open sends a request and returns the response with any status.
func (e *Engine) open(ctx context.Context, by *http.Client, method string, to *url.URL, body any) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, fault.Wrap(err, fault.Internal, "cannot encode a request to the engine")
		}
		content = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, method, to.String(), content)
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "cannot create a request to the engine")
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if parent := port.TraceParent(ctx); parent != "" {
		req.Header.Set("Traceparent", parent)
	}
	if e.cfg.Key != nil {
		key, err := e.cfg.Key(ctx)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", bearer+key)
	}
	resp, err := by.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, unreachable(err, to.Host)
	}
	return resp, nil
}

// bearer precedes the key in its header.
const bearer = "Bearer "

// unreachable returns the fault for a server that has not answered.
func unreachable(err error, host string) error {
	err = withoutURL(err)
	_, invalid := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case errors.Is(err, guard.ErrNotPermitted):
		return fault.Wrap(err, fault.PoolUnavailable, "the host %s has an address that is not public and that the operator does not permit", host)
	case invalid:
		return fault.Wrap(err, fault.PoolUnavailable, "the certificate of %s is not valid for it", host)
	}
	return fault.Wrap(err, fault.PoolUnavailable, "the engine at %s does not answer", host)
}

// probe requests a path that returns 200 while the server accepts requests.
func (e *Engine) probe(ctx context.Context, path string) (port.EngineHealth, error) {
	resp, err := e.open(ctx, e.client, http.MethodGet, e.at(path), nil)
	if err != nil {
		return port.EngineHealth{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return port.EngineHealth{Live: true, Ready: true}, nil
	}
	return port.EngineHealth{Live: true, Reason: fault.Of(e.refused(ctx, resp)).Message}, nil
}

// withoutURL returns the cause of a failed request.
func withoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// refusal is a response of a server with a status other than 200.
type refusal struct {
	status int
	// path is the path of the request.
	path string
	// message, kind and code come from the body; empty if it has none.
	message, kind, code string
}

// refused returns the fault for a response with a status other than 200.
func (e *Engine) refused(ctx context.Context, resp *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(resp.Body, largestRefusal))
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	e.readyUntil.Store(0)
	return port.EngineAnswer{
		Fault: masked(e.faultOf(resp, text), resp), Status: resp.StatusCode,
		RetryAfter: retry.After(resp.Header.Get("Retry-After"), e.cfg.Clock.Now(), longestPause),
	}
}

// masked returns a fault whose message does not contain the key of the request.
func masked(f *fault.Fault, resp *http.Response) *fault.Fault {
	key := strings.TrimPrefix(resp.Request.Header.Get("Authorization"), bearer)
	if key != "" && strings.Contains(f.Message, key) {
		hidden := *f
		hidden.Message = strings.ReplaceAll(f.Message, key, "***")
		return &hidden
	}
	return f
}

// faultOf returns the fault for a response with this body.
func (e *Engine) faultOf(resp *http.Response, text []byte) *fault.Fault {
	message, kind := messageOf(text)
	code := errorCode(text)
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		f := fault.New(fault.PoolUnavailable, "the engine does not accept the key of its pool (status %d)", resp.StatusCode)
		f.Retryable = false
		return f
	case http.StatusTooManyRequests:
		if code == "insufficient_quota" {
			return noCredit(resp.StatusCode)
		}
		return isBusy(message)
	case http.StatusNotImplemented:
		return refusedParams(message)
	}
	if f := e.dialect.refusal(refusal{resp.StatusCode, resp.Request.URL.Path, message, kind, code}); f != nil {
		return f
	}
	if resp.StatusCode >= 400 && resp.StatusCode < 500 && resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusMethodNotAllowed {
		f := refusedParams(message)
		if tooLong.MatchString(kind) || tooLong.MatchString(code) {
			f.Field = port.FieldPrompt
		}
		return f
	}
	return fault.New(fault.PoolUnavailable, "the engine answered with status %d: %s", resp.StatusCode, message)
}

// isBusy returns the fault for a request that the engine refuses because it has too many
// requests.
func isBusy(message string) *fault.Fault {
	return fault.New(fault.ReplicaExhausted, "the engine is busy: %s", message)
}

// refusedParams returns the fault for parameters that the engine refuses. For a prompt that is
// too long it has the field.
func refusedParams(message string) *fault.Fault {
	f := fault.New(fault.InvalidParams, "the engine refuses the request: %s", message)
	if tooLong.MatchString(message) {
		f.Field = port.FieldPrompt
	}
	return f
}

// tooLong matches the messages of llama-server, vLLM and TGI, and those of services with
// OpenAI's API, about a prompt that is longer than the context of the model.
var tooLong = regexp.MustCompile("(?i)exceeds? the (available )?(context|maximum number of tokens)|maximum (context|model) length|context length is only|" +
	"context_length_exceeded|exceed_context_size|longer than the (model's )?(context|maximum)|exceeds the model's maximum|`inputs` (must have less than|tokens \\+)")

// errorCode returns the code of an error body {"error":{"code":"..."}}; empty if it has none.
func errorCode(body []byte) (code string) {
	var fields struct {
		Error struct {
			Code json.RawMessage `json:"code"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &fields) != nil || json.Unmarshal(fields.Error.Code, &code) != nil {
		return "" // the code of llama-server and vLLM is a number
	}
	return code
}

// messageOf returns the message of an error body and its kind. The servers send
// {"error":{"message","type"}}, {"error":"…","error_type":"…"}, {"detail":"…"} or text,
// each also as the data of an event.
func messageOf(body []byte) (message, kind string) {
	text := strings.TrimSpace(string(body))
	text = strings.TrimSpace(strings.TrimPrefix(text, "data:"))
	var fields struct {
		Error  json.RawMessage `json:"error"`
		Kind   string          `json:"error_type"`
		Detail string          `json:"detail"`
	}
	if json.Unmarshal([]byte(text), &fields) != nil {
		return short(text), ""
	}
	var nested struct {
		Message string `json:"message"`
		Type    string `json:"type"`
	}
	switch {
	case json.Unmarshal(fields.Error, &message) == nil:
		return short(message), fields.Kind
	case json.Unmarshal(fields.Error, &nested) == nil && nested.Message != "":
		return short(nested.Message), nested.Type
	case fields.Detail != "":
		return short(fields.Detail), ""
	}
	return short(text), ""
}

// short returns at most longestMessage bytes of a message, on one line.
func short(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if text == "" {
		return "no message"
	}
	if len(text) > longestMessage {
		text = strings.ToValidUTF8(text[:longestMessage], "") + "..."
	}
	return text
}
