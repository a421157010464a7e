package apicheck

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// ofHTTP are headers that the document does not describe for each response: those of the
// connection, and Warning, which any response can have.
var ofHTTP = []string{"Warning", "Date", "Content-Type", "Content-Length", "Connection", "Transfer-Encoding", "Vary"}

const problemType = "application/problem+json"

// Check compares a response with the document. It reads a JSON body and restores it. If the
// document does not describe the request, the response must be a problem.
func (d *Document) Check(r *http.Request, answer *http.Response) error {
	op, known := d.operation(r)
	if err := d.check(op, known, r, answer); err != nil {
		return fmt.Errorf("%s %s returned %d: %w", r.Method, r.URL.Path, answer.StatusCode, err)
	}
	return nil
}

func (d *Document) check(op Operation, known bool, r *http.Request, answer *http.Response) error {
	if !known {
		return d.checkUnknown(r, answer)
	}
	response, at, err := d.find(op.pointer + "/responses/" + strconv.Itoa(answer.StatusCode))
	if err != nil {
		return errors.New("undocumented status")
	}
	if err := d.checkHeaders(response, at, answer.Header); err != nil {
		return err
	}
	content, described := response["content"].(map[string]any)
	if !described {
		return checkEmpty(answer)
	}
	kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("invalid content type: %w", err)
	}
	media, ok := content[kind].(map[string]any)
	if !ok {
		if _, whatever := content["*/*"]; !whatever {
			return fmt.Errorf("undocumented content type %s", kind)
		}
		return nil
	}
	if _, ok := media["schema"]; !ok || r.Method == http.MethodHead {
		return nil
	}
	return d.checkBody(at+"/content/"+escape(kind)+"/schema", answer)
}

// checkUnknown checks the response to a request that the document does not describe: a problem
// with the status 403, 404 or 405.
func (d *Document) checkUnknown(r *http.Request, answer *http.Response) error {
	switch answer.StatusCode {
	case http.StatusNotFound, http.StatusForbidden:
	case http.StatusMethodNotAllowed:
		if answer.Header.Get("Allow") == "" {
			return errors.New("missing header Allow")
		}
	default:
		return errors.New("undocumented path")
	}
	if kind := answer.Header.Get("Content-Type"); kind != problemType {
		return fmt.Errorf("content type %s, want that of a problem", kind)
	}
	if r.Method == http.MethodHead {
		return nil
	}
	if strings.HasPrefix(r.URL.Path, "/v1/") && answer.StatusCode != http.StatusForbidden {
		return d.checkBody("/components/schemas/UnknownPath", answer)
	}
	return d.checkBody("/components/schemas/Problem", answer)
}

func checkEmpty(answer *http.Response) error {
	if answer.StatusCode != http.StatusNoContent && answer.StatusCode != http.StatusNotModified {
		return nil // a redirect may have a short HTML body
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return fmt.Errorf("cannot read the body: %w", err)
	}
	if len(body) > 0 {
		return fmt.Errorf("got a body of %d bytes, want none", len(body))
	}
	return nil
}

func (d *Document) checkHeaders(response map[string]any, at string, header http.Header) error {
	described, _ := response["headers"].(map[string]any)
	for name := range described {
		h, where, err := d.find(at + "/headers/" + escape(name))
		if err != nil {
			return err
		}
		values := header.Values(name)
		switch {
		case len(values) == 0 && h["required"] == true:
			return fmt.Errorf("missing header %s", name)
		case len(values) > 1:
			return fmt.Errorf("header %s occurs %d times", name, len(values))
		case len(values) == 1:
			if err := d.validate(where+"/schema", values[0]); err != nil {
				return fmt.Errorf("header %s: %w", name, err)
			}
		}
	}
	for name := range header {
		ofDocument := func(described string) bool { return strings.EqualFold(described, name) }
		if !slices.Contains(ofHTTP, name) && !slices.ContainsFunc(keys(described), ofDocument) {
			return fmt.Errorf("undocumented header %s", name)
		}
	}
	return nil
}

func keys(object map[string]any) []string {
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, name)
	}
	return names
}

func (d *Document) checkBody(pointer string, answer *http.Response) error {
	body, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return fmt.Errorf("cannot read the body: %w", err)
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	if length := answer.Header.Get("Content-Length"); length != "" && length != strconv.Itoa(len(body)) {
		return fmt.Errorf("got a body of %d bytes, want Content-Length %s", len(body), length)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("the body is not JSON: %w", err)
	}
	if err := d.validate(pointer, value); err != nil {
		return fmt.Errorf("%w in the body %s", err, body)
	}
	if problem, ok := value.(map[string]any); ok && answer.Header.Get("Content-Type") == problemType &&
		fmt.Sprint(problem["status"]) != strconv.Itoa(answer.StatusCode) {
		return fmt.Errorf("the problem has status %v", problem["status"])
	}
	return nil
}

func (d *Document) validate(pointer string, value any) error {
	schema, err := d.schema(pointer)
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// curlType is the content type that curl sends for data without a header. Routes for workers'
// tokens read such a body as JSON.
const curlType = "application/x-www-form-urlencoded"

// checkRequestType requires the content type of an accepted body, if sent, to be documented.
// The content type is not JSON.
func (d *Document) checkRequestType(op Operation, known bool, header string) error {
	content, _, err := d.find(op.pointer + "/requestBody/content")
	if !known || err != nil {
		return nil //nolint:nilerr // an operation without a body has none to check
	}
	kind, _, err := mime.ParseMediaType(header)
	if err != nil {
		return nil //nolint:nilerr // workers may leave it out
	}
	if kind == curlType && slices.Contains(op.Credentials, "workerToken") {
		return nil
	}
	if content[kind] == nil && content["*/*"] == nil {
		return fmt.Errorf("%s %s accepted a body of the undocumented content type %s", op.Method, op.Path, kind)
	}
	return nil
}

// CheckSchema validates a JSON text against the component schema with the name.
func (d *Document) CheckSchema(name string, text []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = d.validate("/components/schemas/"+escape(name), value)
	}
	if err != nil {
		return fmt.Errorf("does not match the schema %s: %w", name, err)
	}
	return nil
}

// CheckRequest validates the body of a successful request against the document: a JSON body
// against its schema, others by their content type.
func (d *Document) CheckRequest(r *http.Request, body []byte) error {
	op, known := d.operation(r)
	if kind := r.Header.Get("Content-Type"); kind != "" && !strings.Contains(kind, "json") {
		return d.checkRequestType(op, known, kind)
	}
	pointer := op.pointer + "/requestBody/content/application~1json/schema"
	if _, _, err := d.find(pointer); !known || err != nil {
		return nil //nolint:nilerr // an operation without a body has none to check
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err == nil {
		err = d.validate(pointer, value)
	}
	if err != nil {
		return fmt.Errorf("%s %s accepted an undocumented body: %w", r.Method, r.URL.Path, err)
	}
	return nil
}
