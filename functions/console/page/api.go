package page

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"sync"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// InProcess returns a transport that calls a handler of this process. The response is available
// while the handler still writes its body. handler is called once for each request.
func InProcess(handler func() http.Handler) http.RoundTripper { return inProcess(handler) }

type inProcess func() http.Handler

// RoundTrip implements http.RoundTripper.
func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r = r.Clone(r.Context())
		r.Body = http.NoBody
	}
	body, to := io.Pipe()
	w := &piped{header: http.Header{}, to: to, begun: make(chan struct{})}
	stop := context.AfterFunc(r.Context(), func() { _ = to.CloseWithError(r.Context().Err()) })
	go func() {
		defer stop()
		defer func() {
			if thrown := recover(); thrown != nil { // http.ErrAbortHandler: the server has logged the reason
				_ = to.CloseWithError(io.ErrUnexpectedEOF)
				w.fail()
				return
			}
			w.WriteHeader(http.StatusOK)
			_ = to.Close()
		}()
		p().ServeHTTP(w, r)
	}()
	<-w.begun
	if w.status == 0 {
		return nil, errors.New("the handler aborted its response")
	}
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: body, ContentLength: -1, Request: r,
	}, nil
}

// piped is a response whose body is read while it is written.
type piped struct {
	header, sent http.Header
	to           *io.PipeWriter
	once         sync.Once
	begun        chan struct{}
	status       int
}

// Header implements http.ResponseWriter.
func (w *piped) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *piped) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.begun)
	})
}

func (w *piped) fail() { w.once.Do(func() { close(w.begun) }) }

// Write implements http.ResponseWriter.
func (w *piped) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.to.Write(p)
}

// Flush implements http.Flusher. A write returns when it was read.
func (w *piped) Flush() { w.WriteHeader(http.StatusOK) }

// AnswerLimit is the largest size of a JSON response that a page reads, in bytes.
const AnswerLimit = 16 << 20

// Document is the body of a request in another format than that of encoding/json.
type Document struct {
	Type string
	Text []byte
}

// bodyOf returns the body of a request and its content type.
func bodyOf(body any) (io.Reader, string, error) {
	if body == nil {
		return nil, "", nil
	}
	if d, ok := body.(Document); ok {
		return bytes.NewReader(d.Text), d.Type, nil
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, "", fmt.Errorf("cannot encode a request: %w", err)
	}
	return bytes.NewReader(text), httpkit.TypeJSON, nil
}

// Call sends a request to the API with the token of the session. body is a document or a value
// for encoding/json; nil means no body. The caller closes the body of the response.
func (v *Visit) Call(method, path string, query url.Values, body any, header http.Header) (*http.Response, error) {
	content, kind, err := bodyOf(body)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(v.Request.Context(), method, v.Config.URL+path, content) //nolint:gosec // G704: the address of the API and a path of one of its operations
	if err != nil {
		return nil, fmt.Errorf("cannot call the API: %w", err)
	}
	r.URL.RawQuery = query.Encode()
	maps.Copy(r.Header, header)
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	r.Header.Set("Authorization", "Bearer "+v.Session.Text)
	r.Header.Set("X-Correlation-Id", httpkit.CorrelationID(v.Request.Context()))
	r.Header.Set("User-Agent", "sortie-console")
	response, err := v.Config.API.RoundTrip(r)
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "the API did not respond; retry")
	}
	return response, nil
}

// Read decodes the response of an operation into a value, unless it is nil. The error is the
// problem of a refusal.
func Read(response *http.Response, into any) (err error) {
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	text, err := io.ReadAll(io.LimitReader(response.Body, AnswerLimit+1))
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "the response of the API was interrupted; retry")
	}
	if len(text) > AnswerLimit {
		return fault.New(fault.TooLarge, "the response of the API has more than %d bytes", AnswerLimit)
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		p := &httpkit.Problem{Header: http.Header{}}
		if json.Unmarshal(text, &p.Body) != nil || p.Body.Status == 0 {
			p.Body = contract.Problem{Title: http.StatusText(response.StatusCode), Detail: "the API refused the request", Code: string(fault.Unavailable)}
		}
		p.Body.Status = response.StatusCode
		return p
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("cannot read a response of the API: %w", err)
	}
	return nil
}

// Get reads a resource of the API.
func (v *Visit) Get(path string, query url.Values, into any) error {
	response, err := v.Call(http.MethodGet, path, query, nil, nil)
	if err != nil {
		return err
	}
	return Read(response, into)
}

// Post calls an operation of the API that changes something.
func (v *Visit) Post(path string, body, into any) error {
	response, err := v.Call(http.MethodPost, path, nil, body, nil)
	if err != nil {
		return err
	}
	return Read(response, into)
}

// Tagged is like get. It returns the entity tag of the resource, too.
func (v *Visit) Tagged(path string, into any) (tag string, err error) {
	response, err := v.Call(http.MethodGet, path, nil, nil, nil)
	if err != nil {
		return "", err
	}
	return response.Header.Get("ETag"), Read(response, into)
}

// Patch changes fields of a resource of the API.
func (v *Visit) Patch(path string, body, into any) error {
	response, err := v.Call(http.MethodPatch, path, nil, body, nil)
	if err != nil {
		return err
	}
	return Read(response, into)
}

// Remove deletes a resource of the API.
func (v *Visit) Remove(path string) error {
	response, err := v.Call(http.MethodDelete, path, nil, nil, nil)
	if err != nil {
		return err
	}
	return Read(response, nil)
}
