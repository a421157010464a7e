package conformance

import (
	"fmt"
	"math"
	"mime"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
)

// skew is how far a worker's clock may be from ours: they are on one host.
const skew = 5 * time.Minute

// general judges what holds for every call of every scenario.
func (st *stage) general() {
	calls := st.plane.Calls()
	if len(calls) == 0 {
		st.verdict(sentenceStarted, Broken, "nothing came%s", st.lastWords())
		return
	}
	ours := slices.DeleteFunc(slices.Clone(calls), func(c *Call) bool { return c.Endpoint == "put" })
	first := slices.IndexFunc(ours, func(c *Call) bool { return c.Endpoint != "" })
	st.keeps(sentenceStarted, first >= 0 && ours[first].Endpoint == "started", "the first call was %s", st.shown(ours[max(0, first)]))
	st.each(sentenceAddress, ours, func(c *Call) string {
		if c.Endpoint == "" {
			return st.shown(c)
		}
		return ""
	})
	ours = slices.DeleteFunc(ours, func(c *Call) bool { return c.Endpoint == "" })
	st.each(sentenceBearer, ours, func(c *Call) string {
		token, ok := strings.CutPrefix(c.Header.Get("Authorization"), "Bearer ")
		switch {
		case !ok || !slices.Contains(st.plane.secrets, token):
			return c.Endpoint + " has no task token as Bearer"
		case st.hasSecret(c.Path + string(c.Body)):
			return c.Endpoint + " has it in its address or body too"
		}
		return ""
	})
	st.each(sentenceBucket, st.of("put"), func(c *Call) string {
		if c.Header.Get("Authorization") != "" {
			return "an upload has an Authorization header"
		}
		return ""
	})
	if st.hasSecret(st.worker.output.String()) {
		st.verdict(sentenceSecret, Broken, "one of them is in what the worker printed")
	} else {
		st.verdict(sentenceSecret, Kept, "")
	}
	st.each(sentenceJSON, ours, func(c *Call) string {
		kind, _, _ := mime.ParseMediaType(c.Header.Get("Content-Type"))
		if c.Fields == nil || kind != "application/json" {
			return fmt.Sprintf("%s is %q, and a JSON object: %s", c.Endpoint, kind, yes(c.Fields != nil))
		}
		return ""
	})
	ours = slices.DeleteFunc(ours, func(c *Call) bool { return c.Fields == nil })
	st.each(sentenceAttempt, ours, func(c *Call) string {
		if c.Fields["attempt"] != float64(st.plane.envelope.Attempt) {
			return fmt.Sprintf("%s says %v, and it is %d", c.Endpoint, c.Fields["attempt"], st.plane.envelope.Attempt)
		}
		return ""
	})
	st.each(sentenceWorkerID, ours, func(c *Call) string {
		if id, _ := c.Fields["workerId"].(string); id == "" || id != ours[0].Fields["workerId"] {
			return fmt.Sprintf("%s says %v, the first call %v", c.Endpoint, c.Fields["workerId"], ours[0].Fields["workerId"])
		}
		return ""
	})
	st.each(sentenceTimes, ours, wrongTime)
	st.each(sentenceProgress, st.of("heartbeat"), wrongProgress)
	st.each(sentenceError, slices.DeleteFunc(st.of("completed"), func(c *Call) bool { return c.Fields["outcome"] != contract.OutcomeFailed }), wrongError)
}

// each judges a sentence over calls; wrong says what is wrong with one.
func (st *stage) each(s Sentence, calls []*Call, wrong func(*Call) string) {
	if len(calls) == 0 {
		return
	}
	for _, c := range calls {
		if detail := wrong(c); detail != "" {
			st.verdict(s, Broken, "%s", detail)
			return
		}
	}
	st.verdict(s, Kept, "")
}

func (st *stage) hasSecret(text string) bool {
	return slices.ContainsFunc(st.plane.secrets, func(s string) bool { return strings.Contains(text, s) })
}

// shown names a call, without secrets.
func (st *stage) shown(c *Call) string { return st.hidden(c.Method + " " + c.Path) }

func (st *stage) hidden(text string) string {
	for _, s := range st.plane.secrets {
		text = strings.ReplaceAll(text, s, "(secret)")
	}
	return text
}

// lastWords are the end of what the worker printed.
func (st *stage) lastWords() string {
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
	if err != nil || at.Sub(c.At).Abs() > skew {
		return fmt.Sprintf("%s is %v", name, value)
	}
	return ""
}

func wrongProgress(c *Call) string {
	if value, present := c.Fields["progressPct"]; present {
		if n, ok := value.(float64); !ok || n < 0 || n > 100 || n != math.Trunc(n) {
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
