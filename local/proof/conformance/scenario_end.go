package conformance

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
)

// judgeWork judges an undisturbed conversation.
func judgeWork(st *stage) {
	started, heartbeats, completed := st.of("started"), st.of("heartbeat"), st.of("completed")
	if len(started) == 0 {
		return
	}
	if len(completed) == 0 {
		st.verdict(sentenceCompleted, Broken, "it sent none%s", st.lastWords())
		return
	}
	end := completed[0]
	st.keeps(sentenceCompleted, slices.Contains([]any{contract.OutcomeSucceeded, contract.OutcomeFailed, contract.OutcomeCancelled}, end.Fields["outcome"]),
		"the outcome is %v", end.Fields["outcome"])
	st.judgeInterval(started[0], heartbeats, end)
	late := 0
	for _, c := range st.plane.Calls() {
		if c != end && c.Endpoint != "put" && c.At.Sub(end.At) > st.config.Interval/2+onItsWay || c != end && c.Endpoint == "completed" {
			late++
		}
	}
	st.keeps(sentenceOnce, late == 0, "%d calls came after it", late)
	st.keeps(sentenceTolerant, !st.stopped, "the process had not ended %s after completed was answered", st.config.Abort+time.Second)
	progress := slices.ContainsFunc(heartbeats, func(c *Call) bool { return c.Fields["progressPct"] != nil || c.Fields["message"] != nil })
	st.verdict(noteProgress, Noted, "%s", yes(progress))
	st.verdict(noteMetrics, Noted, "%s", yes(end.Fields["metrics"] != nil))
	st.verdict(noteUpload, Noted, "%s", yes(len(st.of("put")) > 0))
}

// onItsWay is how long a call may take on a busy host that was sent before the
// answer to another was read.
const onItsWay = 500 * time.Millisecond

// fewest is how many heartbeats a worker has to give occasion for.
const fewest = 4

func (st *stage) judgeInterval(started *Call, heartbeats []*Call, end *Call) {
	took := end.At.Sub(started.At)
	due := int(took / st.config.Interval)
	if due < fewest {
		st.verdict(sentenceInterval, Unproven, "it worked for %s only; let it work for %s at least",
			took.Round(time.Millisecond), 10*st.config.Interval)
		return
	}
	// A busy host may lose some; a worker with a pace of its own has far fewer.
	st.keeps(sentenceInterval, 3*len(heartbeats) >= due && len(heartbeats) <= 2*due+fewest,
		"%d heartbeats in %s, where %d were due", len(heartbeats), took.Round(time.Millisecond), due)
	last, longest := started.At, time.Duration(0)
	for _, c := range append(slices.Clone(heartbeats), end) {
		longest, last = max(longest, c.At.Sub(last)), c.At
	}
	st.keeps(sentenceAlive, longest <= st.config.Timeout, "nothing came for %s", longest.Round(time.Millisecond))
}

// occasion says whether what the scenario is about has happened; otherwise the
// sentence is unproven.
func (st *stage) occasion(s Sentence) bool {
	if st.event.IsZero() {
		st.verdict(s, Unproven, "there was no second heartbeat; let the worker work for %s at least%s", 10*st.config.Interval, st.lastWords())
	}
	return !st.event.IsZero()
}

func decideRenewal(st *stage, c *Call, n int) *Answer {
	if c.Endpoint == "completed" {
		st.within(st.config.Abort)
	}
	if c.Endpoint != "heartbeat" || n != turn {
		return nil
	}
	st.happens()
	body := st.plane.Renew()
	body["acknowledged"], body["shouldCancel"] = true, false
	return &Answer{Status: http.StatusOK, Body: body}
}

func judgeRenewal(st *stage) {
	if !st.occasion(sentenceRenewal) {
		return
	}
	later, old := 0, 0
	for _, c := range slices.Concat(st.since("heartbeat"), st.since("completed")) {
		if c.At.Sub(st.event) < min(st.config.Interval/2, onItsWay) {
			continue // may have been on its way
		}
		later++
		if c.Header.Get("Authorization") != "Bearer "+c.Token {
			old++
		}
	}
	if later == 0 {
		st.verdict(sentenceRenewal, Unproven, "nothing was sent after the renewal; let the worker work longer")
		return
	}
	st.keeps(sentenceRenewal, old == 0, "%d of %d calls afterwards had another token", old, later)
}

func decideResultUnheard(st *stage, c *Call, n int) *Answer {
	if c.Endpoint != "completed" {
		return nil
	}
	st.happens()
	switch n {
	case 0:
		return &Answer{Drop: true}
	case 1:
		return refusal(http.StatusServiceUnavailable, "unavailable", nil)
	}
	st.within(st.config.Abort)
	return nil
}

func judgeResultUnheard(st *stage) {
	tries := st.of("completed")
	if len(tries) == 0 {
		st.verdict(sentenceAgain, Unproven, "it sent no completed")
		return
	}
	same := true
	for _, c := range tries {
		same = same && said(c) == said(tries[0])
	}
	st.keeps(sentenceAgain, len(tries) >= 3 && same, "it was sent %d times, and the result was the same each time: %s", len(tries), yes(same))
}

// said is the result in a completed.
func said(c *Call) string {
	text, err := json.Marshal([]any{c.Fields["outcome"], c.Fields["output"], c.Fields["error"]})
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func decideResultRefused(st *stage, c *Call, _ int) *Answer {
	if c.Endpoint != "completed" {
		return nil
	}
	st.happens()
	st.within(st.config.Abort)
	return refusal(http.StatusConflict, contract.ErrorAttemptMismatch, map[string]any{"expectedAttempt": 4, "receivedAttempt": 3})
}

func judgeResultRefused(st *stage) {
	if n := len(st.of("completed")); n > 0 {
		st.keeps(sentenceLate, n == 1 && !st.stopped, "it was sent %d times%s", n, st.lasted())
	}
}

func (st *stage) lasted() string {
	if st.stopped {
		return ", and the process had not ended " + st.config.Abort.String() + " later"
	}
	return ""
}
