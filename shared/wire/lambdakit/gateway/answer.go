package gateway

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
)

// AnswerLimit is the maximum size of a buffered response event in bytes (Lambda quotas: 6 MB
// for a synchronous response).
const AnswerLimit = 6 << 20

var errTooLarge = errors.New("the answer exceeds Lambda's limit")

// answer is an http.ResponseWriter that buffers a response up to AnswerLimit.
type answer struct {
	header http.Header
	sent   http.Header // the header at the call of WriteHeader
	status int
	body   bytes.Buffer
	over   bool
	stage  string
	silent bool // the body is discarded
}

func newAnswer(r *http.Request, stage string) *answer {
	return &answer{header: http.Header{}, stage: stage, silent: r.Method == http.MethodHead}
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader stores the first final status. It ignores informational and later ones.
func (a *answer) WriteHeader(status int) {
	if a.status != 0 || status < http.StatusOK {
		return
	}
	a.status, a.sent = status, settled(a.header, a.stage)
	a.silent = a.silent || !hasBody(status)
}

func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		sniff(a.header, p)
		a.WriteHeader(http.StatusOK)
	}
	switch {
	case a.silent:
		return len(p), nil
	case a.over || a.body.Len()+len(p) > AnswerLimit:
		a.over = true
		return 0, errTooLarge
	}
	return a.body.Write(p)
}

// event returns the response as an event for API Gateway. It returns errTooLarge above
// AnswerLimit.
func (a *answer) event() ([]byte, error) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK) // like net/http
	}
	if a.over {
		return nil, errTooLarge
	}
	response := events.APIGatewayProxyResponse{
		StatusCode: a.status, MultiValueHeaders: a.sent, Headers: map[string]string{}, Body: a.body.String(),
	}
	if isBinary(a.sent, a.body.Bytes()) {
		response.Body, response.IsBase64Encoded = base64.StdEncoding.EncodeToString(a.body.Bytes()), true
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(response); err != nil {
		return nil, fmt.Errorf("cannot encode the answer's event: %w", err)
	}
	if text.Len() > AnswerLimit {
		return nil, errTooLarge
	}
	return text.Bytes(), nil
}

// settled returns a copy of the header without the headers that API Gateway sets. A path in
// Location gets the stage as a prefix, because handlers do not know the stage.
func settled(header http.Header, stage string) http.Header {
	header = header.Clone()
	if to := header.Get("Location"); strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "//") {
		header.Set("Location", stage+to)
	}
	for _, name := range hopByHop {
		header.Del(name)
	}
	return header
}

// hasBody reports whether a response with the status may have a body.
func hasBody(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}

// sniff sets a missing Content-Type as net/http does.
func sniff(header http.Header, body []byte) {
	if header.Get("Content-Type") == "" && len(body) > 0 {
		header.Set("Content-Type", http.DetectContentType(body))
	}
}

// isBinary reports whether a body needs base64. An event is JSON, which can contain only UTF-8.
func isBinary(header http.Header, body []byte) bool {
	if len(body) == 0 {
		return false
	}
	encoding := header.Get("Content-Encoding")
	return encoding != "" && encoding != "identity" || !isText(header.Get("Content-Type")) || !utf8.Valid(body)
}

func isText(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	switch {
	case err != nil:
		return false
	case strings.HasPrefix(kind, "text/"), strings.HasSuffix(kind, "+json"), strings.HasSuffix(kind, "+xml"), strings.HasSuffix(kind, "x-ndjson"):
		return true
	}
	return kind == "application/json" || kind == "application/xml" || kind == "application/x-www-form-urlencoded"
}
