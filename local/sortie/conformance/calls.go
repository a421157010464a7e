package conformance

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"mime"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// maxSkew limits the difference between a worker's time and the kit's.
const maxSkew = 5 * time.Minute

// checkCalls checks the requirements on every call of every scenario.
func (st *session) checkCalls() {
	calls := st.plane.Calls()
	if len(calls) == 0 {
		st.fail(reqStarted, Failed, "", "got no call%s", st.outputTail())
		return
	}
	ours := slices.DeleteFunc(slices.Clone(calls), func(c *Call) bool { return c.Endpoint == "put" })
	first := slices.IndexFunc(ours, func(c *Call) bool { return c.Endpoint != "" })
	st.require(reqStarted, first >= 0 && ours[first].Endpoint == "started", "the first call was %s", st.shown(ours[max(0, first)]))
	st.each(reqEndpoint, ours, func(c *Call) string {
		if c.Endpoint == "" {
			return st.shown(c)
		}
		return ""
	})
	ours = slices.DeleteFunc(ours, func(c *Call) bool { return c.Endpoint == "" })
	st.each(reqBearer, ours, func(c *Call) string {
		token, ok := strings.CutPrefix(c.Header.Get("Authorization"), "Bearer ")
		switch {
		case !ok || !slices.Contains(st.plane.secrets, token):
			return c.Endpoint + " has no task token as Bearer"
		case st.hasSecret(c.Path + string(c.Body)):
			return c.Endpoint + " has the token in its URL or body too"
		}
		return ""
	})
	st.each(reqBucket, st.calls("put"), func(c *Call) string {
		if st.hasSecret(c.Header.Get("Authorization")) {
			return "an upload has the token in its Authorization header"
		}
		return ""
	})
	st.require(reqSecret, !st.hasSecret(st.worker.output.String()), "the worker printed one")
	st.each(reqJSON, ours, func(c *Call) string {
		kind, _, _ := mime.ParseMediaType(c.Header.Get("Content-Type"))
		if c.Fields == nil || kind != "application/json" {
			return fmt.Sprintf("%s has Content-Type %q, and its body is a JSON object: %s", c.Endpoint, kind, yes(c.Fields != nil))
		}
		return ""
	})
	ours = slices.DeleteFunc(ours, func(c *Call) bool { return c.Fields == nil })
	st.each(reqAttempt, ours, func(c *Call) string {
		if c.Fields["attempt"] != float64(st.plane.envelope.Attempt) {
			return fmt.Sprintf("%s has %v, want %d", c.Endpoint, c.Fields["attempt"], st.plane.envelope.Attempt)
		}
		return ""
	})
	st.each(reqOutput, st.calls("logs"), st.wrongOutput())
	ours = slices.DeleteFunc(ours, func(c *Call) bool { return c.Endpoint == "logs" })
	st.each(reqWorkerID, ours, func(c *Call) string {
		if id, _ := c.Fields["workerId"].(string); id == "" || id != ours[0].Fields["workerId"] {
			return fmt.Sprintf("%s has %v, the first call %v", c.Endpoint, c.Fields["workerId"], ours[0].Fields["workerId"])
		}
		return ""
	})
	st.each(reqTimes, ours, wrongTime)
	st.each(reqProgress, st.calls("heartbeat"), wrongProgress)
	st.each(reqError, slices.DeleteFunc(st.calls("completed"), func(c *Call) bool { return c.Fields["outcome"] != contract.OutcomeFailed }), wrongError)
}

// each checks a requirement on every call. wrong returns the defect of a call, or "".
func (st *session) each(r Requirement, calls []*Call, wrong func(*Call) string) {
	if len(calls) == 0 {
		return
	}
	for _, c := range calls {
		if detail := wrong(c); detail != "" {
			st.fail(r, Failed, "", "%s", detail)
			return
		}
	}
	st.require(r, true, "")
}

func (st *session) hasSecret(text string) bool {
	return slices.ContainsFunc(st.plane.secrets, func(s string) bool { return strings.Contains(text, s) })
}

// shown returns the method and path of a call without secrets.
func (st *session) shown(c *Call) string { return st.hidden(c.Method + " " + c.Path) }

func (st *session) hidden(text string) string {
	for _, s := range st.plane.secrets {
		text = strings.ReplaceAll(text, s, "(secret)")
	}
	return text
}

// outputTail returns the end of the worker's output, without secrets.
func (st *session) outputTail() string {
	text := strings.TrimSpace(st.hidden(st.worker.output.String()))
	if text == "" {
		return ""
	}
	return "; it printed: " + text[max(0, len(text)-500):]
}

func wrongTime(c *Call) string {
	name := map[string]string{"started": "startedAt", "heartbeat": "heartbeatAt", "completed": "completedAt"}[c.Endpoint]
	value, present := c.Fields[name]
	if !present && c.Endpoint == "heartbeat" {
		return ""
	}
	text, _ := value.(string)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Sub(c.At).Abs() > maxSkew {
		return fmt.Sprintf("%s is %v", name, value)
	}
	return ""
}

func wrongProgress(c *Call) string {
	if value, present := c.Fields["progressPct"]; present {
		if n, ok := value.(float64); !ok || n < 0 || n > 100 {
			return fmt.Sprintf("progressPct is %v", value)
		}
	}
	if value, present := c.Fields["message"]; present {
		if _, ok := value.(string); !ok {
			return fmt.Sprintf("message is %v", value)
		}
	}
	return ""
}

// wrongOutput returns a check of calls that send output, in order. Each call must be the next
// one, or repeat the last one.
func (st *session) wrongOutput() func(c *Call) string {
	var last *Call
	return func(c *Call) string {
		stream, _ := c.Fields["stream"].(string)
		sequence, _ := c.Fields["sequence"].(float64)
		data, isText := c.Fields["data"].(string)
		content, err := base64.StdEncoding.DecodeString(data)
		switch {
		case stream != "stdout" && stream != "stderr":
			return fmt.Sprintf("stream is %v", c.Fields["stream"])
		case !isText || err != nil || len(content) > limit.LogChunk:
			return fmt.Sprintf("data is no base64 of at most %d bytes", limit.LogChunk)
		case last == nil && sequence != 0 && sequence != 1,
			last != nil && sequence != last.Fields["sequence"].(float64)+1 && !bytes.Equal(c.Body, last.Body): //nolint:forcetypeassert // it was checked
			return fmt.Sprintf("sequence is %v, want the next number, or the same call again", c.Fields["sequence"])
		}
		last = c
		return ""
	}
}

func wrongError(c *Call) string {
	e, _ := c.Fields["error"].(map[string]any)
	category, _ := e["category"].(string)
	message, _ := e["message"].(string)
	_, decided := e["retryable"].(bool)
	if !slices.Contains(contract.Categories(), category) || message == "" || e["retryable"] != nil && !decided {
		return fmt.Sprintf("the error is %v", c.Fields["error"])
	}
	return ""
}
