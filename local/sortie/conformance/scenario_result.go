package conformance

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// checkWork checks a run without special answers.
func checkWork(st *session) {
	started, heartbeats, completed := st.calls("started"), st.calls("heartbeat"), st.calls("completed")
	if len(started) == 0 {
		return
	}
	if len(completed) == 0 {
		st.fail(reqCompleted, Failed, st.earlyEnd(), "got no completed%s", st.outputTail())
		return
	}
	end := completed[0]
	st.require(reqCompleted, slices.Contains([]any{contract.OutcomeSucceeded, contract.OutcomeFailed, contract.OutcomeCancelled}, end.Fields["outcome"]),
		"got outcome %v", end.Fields["outcome"])
	st.checkInterval(started[0], heartbeats, end)
	late := 0
	for _, c := range st.plane.Calls() {
		if c != end && c.Endpoint != "put" && c.At.Sub(end.At) > st.config.Interval/2+inFlight || c != end && c.Endpoint == "completed" {
			late++
		}
	}
	st.require(reqOnce, late == 0, "it made %d calls afterwards", late)
	st.require(reqEnds, !st.stopped, "the process had not ended %s after completed was answered", st.config.Abort+time.Second)
	progress := slices.ContainsFunc(heartbeats, func(c *Call) bool { return c.Fields["progressPct"] != nil || c.Fields["message"] != nil })
	st.note(noteProgress, yes(progress))
	whole := !slices.ContainsFunc(heartbeats, func(c *Call) bool { n, ok := c.Fields["progressPct"].(float64); return ok && n != math.Trunc(n) })
	st.note(noteWhole, yes(whole))
	st.note(noteMetrics, yes(end.Fields["metrics"] != nil))
	st.note(noteUpload, yes(len(st.calls("put")) > 0))
}

// inFlight is how long after an answer an earlier call may still arrive on a busy host.
const inFlight = 500 * time.Millisecond

// minHeartbeats is the minimum number of intervals that a worker must work for.
const minHeartbeats = 4

func (st *session) checkInterval(started *Call, heartbeats []*Call, end *Call) {
	took := end.At.Sub(started.At)
	due := int(took / st.config.Interval)
	if due < minHeartbeats {
		st.fail(reqInterval, Unproven, tooShort, "it worked for %s: let it work for at least %s",
			took.Round(time.Millisecond), 10*st.config.Interval)
		return
	}
	// A busy host may delay some. A worker may also send one each second for its progress. A
	// worker with its own interval sends far fewer.
	most := 2*due + minHeartbeats + int(took/time.Second)
	st.require(reqInterval, 3*len(heartbeats) >= due && len(heartbeats) <= most,
		"got %d heartbeats in %s, want about %d", len(heartbeats), took.Round(time.Millisecond), due)
	last, longest := started.At, time.Duration(0)
	for _, c := range append(slices.Clone(heartbeats), end) {
		longest, last = max(longest, c.At.Sub(last)), c.At
	}
	st.require(reqAlive, longest <= st.config.Timeout, "got no call for %s", longest.Round(time.Millisecond))
}

// tooShort is the cause of all checks that stay unproven because the worker ends too soon.
const tooShort = "too-short"

// reached reports whether the worker got the special answer. Otherwise the
// requirement is unproven.
func (st *session) reached(r Requirement) bool {
	if st.event.IsZero() {
		st.fail(r, Unproven, cmp.Or(st.earlyEnd(), tooShort), "there was no second heartbeat: let the worker work for at least %s%s", 10*st.config.Interval, st.outputTail())
	}
	return !st.event.IsZero()
}

func answerRenewal(st *session, c *Call, n int) *Answer {
	if c.Endpoint == "completed" {
		st.stopWithin(st.config.Abort)
	}
	if c.Endpoint != "heartbeat" || n != eventHeartbeat {
		return nil
	}
	st.markEvent()
	body := st.plane.Renew()
	body["acknowledged"], body["shouldCancel"] = true, false
	return &Answer{Status: http.StatusOK, Body: body}
}

func checkRenewal(st *session) {
	if st.event.IsZero() {
		st.note(noteRenewal, "unknown: there was no second heartbeat")
		return
	}
	later, old := 0, 0
	for _, c := range slices.Concat(st.callsAfter("heartbeat"), st.callsAfter("completed")) {
		if c.At.Sub(st.event) < min(st.config.Interval/2, inFlight) {
			continue // the call may have been in flight
		}
		later++
		if c.Header.Get("Authorization") != "Bearer "+c.Token {
			old++
		}
	}
	switch {
	case later == 0:
		st.note(noteRenewal, "unknown: it made no call after the renewal")
	case old > 0:
		st.note(noteRenewal, fmt.Sprintf("no: %d of %d later calls had the first token", old, later))
	default:
		st.note(noteRenewal, "yes")
	}
}

func answerResultUnanswered(st *session, c *Call, n int) *Answer {
	if c.Endpoint != "completed" {
		return nil
	}
	st.markEvent()
	switch n {
	case 0:
		return &Answer{Drop: true}
	case 1:
		return refusal(http.StatusServiceUnavailable, "unavailable", nil)
	}
	st.stopWithin(st.config.Abort)
	return nil
}

func checkResultUnanswered(st *session) {
	tries := st.calls("completed")
	if len(tries) == 0 {
		st.fail(reqCompleted, Failed, st.earlyEnd(), "got no completed%s", st.outputTail())
		return
	}
	changed := slices.IndexFunc(tries, func(c *Call) bool { return resultOf(c) != resultOf(tries[0]) })
	st.require(reqUnchanged, changed < 0, "completed %d of %d has another result than the first", changed+1, len(tries))
	if len(tries) < 3 {
		st.note(noteRepeat, fmt.Sprintf("no: it was sent %d times and never answered", len(tries)))
		return
	}
	st.note(noteRepeat, "yes")
}

// resultOf returns the result in a completed.
func resultOf(c *Call) string {
	text, err := json.Marshal([]any{c.Fields["outcome"], c.Fields["output"], c.Fields["error"]})
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func answerResultRefused(st *session, c *Call, _ int) *Answer {
	if c.Endpoint != "completed" {
		return nil
	}
	st.markEvent()
	st.stopWithin(st.config.Abort)
	return refusal(http.StatusConflict, contract.ErrorAttemptMismatch, map[string]any{"expectedAttempt": 4, "receivedAttempt": 3})
}

func checkResultRefused(st *session) {
	if n := len(st.calls("completed")); n > 0 {
		st.require(reqRefused, n == 1 && !st.stopped, "it was sent %d times%s", n, st.notEnded())
	}
}

func (st *session) notEnded() string {
	if st.stopped {
		return ", and the process had not ended " + st.config.Abort.String() + " later"
	}
	return ""
}
