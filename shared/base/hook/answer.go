package hook

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode"

	"github.com/sortie-dev/sortie/shared/base/limit"
)

// Verdict is the result of a hook for a run.
type Verdict string

// The verdicts.
const (
	Allowed     Verdict = "allowed"     // 2xx
	Refused     Verdict = "refused"     // 403, 409 or 422
	Unavailable Verdict = "unavailable" // any other answer, or no answer
)

// Answer is the last answer to a message.
type Answer struct {
	Verdict Verdict
	// Status is the HTTP status; 0 without an answer.
	Status int
	// Body is the start of the response body, at most limit.HookBody bytes of UTF-8.
	Body string
	// Detail is the detail field of a problem document (RFC 9457), or else a description of the
	// answer. It has at most limit.Message bytes and is never empty.
	Detail string
	// Tries is the number of requests; 0 if the URL or a header is not permitted.
	Tries int
}

// readLimit is the maximum number of bytes that are read of a body: enough for a problem
// document.
const readLimit = 64 << 10

func answerOf(status int, body []byte) Answer {
	a := Answer{Verdict: Unavailable, Status: status, Body: limit.Cut(string(body), limit.HookBody)}
	var problem struct {
		Detail string `json:"detail"`
	}
	if json.Unmarshal(body, &problem) == nil {
		a.Detail = limit.Cut(plain(problem.Detail), limit.Message)
	}
	switch {
	case status >= 200 && status < 300:
		a.Verdict, a.Detail = Allowed, ""
	case status == http.StatusForbidden || status == http.StatusConflict || status == http.StatusUnprocessableEntity:
		a.Verdict = Refused
	}
	if a.Detail == "" {
		a.Detail = strings.TrimSpace(fmt.Sprintf("answered %d %s", status, http.StatusText(status)))
	}
	return a
}

// plain replaces control and format characters, which a terminal might interpret.
func plain(text string) string {
	return strings.TrimSpace(strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || unicode.Is(unicode.Cf, c) {
			return ' '
		}
		return c
	}, text))
}

// Untaken is the error of a webhook that its address may accept later: the address gave no
// answer, or one that neither accepts nor refuses the webhook.
type Untaken struct{ Detail string }

func (e *Untaken) Error() string { return e.Detail }
