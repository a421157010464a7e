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

// AnswerLimit is the longest answer that Lambda hands on whole, as the JSON of
// its event, in bytes (Lambda quotas: 6 MB for a synchronous response).
const AnswerLimit = 6 << 20

var errTooLarge = errors.New("the answer is longer than Lambda hands on")

// answer holds what a handler writes, up to AnswerLimit. It is an
// http.ResponseWriter that cannot be flushed.
type answer struct {
	header http.Header
	sent   http.Header // as it was when the status was written
	status int
	body   bytes.Buffer
	over   bool
	stage  string
	silent bool // what is written is not sent
}

func newAnswer(r *http.Request, stage string) *answer {
	return &answer{header: http.Header{}, stage: stage, silent: r.Method == http.MethodHead}
}

// Header is what goes with the status.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader takes the first status that ends a response.
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

// event is the answer as API Gateway takes it. errTooLarge where Lambda does
// not.
func (a *answer) event() ([]byte, error) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK) // as net/http does for a handler that wrote nothing
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
		return nil, fmt.Errorf("cannot write the answer's event: %w", err)
	}
	if text.Len() > AnswerLimit {
		return nil, errTooLarge
	}
	return text.Bytes(), nil
}

// settled is a copy of the header without what is API Gateway's to say. A path
// that leads elsewhere leads through the stage, of which handlers do not know.
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

// hasBody says whether an answer of that status may have one.
func hasBody(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}

// sniff says what the body is where its handler has not, as net/http does.
func sniff(header http.Header, body []byte) {
	if header.Get("Content-Type") == "" && len(body) > 0 {
		header.Set("Content-Type", http.DetectContentType(body))
	}
}

// isBinary says whether a body has to travel as base64: JSON, which events are,
// has no other bytes than those of UTF-8.
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
	case strings.HasPrefix(kind, "text/"), strings.HasSuffix(kind, "+json"), strings.HasSuffix(kind, "+xml"):
		return true
	}
	return kind == "application/json" || kind == "application/xml" || kind == "application/x-www-form-urlencoded"
}
