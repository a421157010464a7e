package conformance

import (
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// scenario is a run of the worker with special answers and checks.
type scenario struct {
	name string
	// answer returns a special answer to the n-th call of an endpoint, from 0; nil means the
	// usual one.
	answer func(st *session, c *Call, n int) *Answer
	check  func(st *session)
	// export marks scenarios for workers that only use the export contract.
	export bool
}

// scenarios are in the order in which they run.
var scenarios = []scenario{
	{name: "work", check: checkWork},
	{name: "start-refused", answer: answerStartRefused, check: checkStartRefused},
	{name: "start-unanswered", answer: answerStartUnanswered, check: checkStartUnanswered},
	{name: "heartbeats-fail", answer: answerHeartbeatsFail, check: checkHeartbeatsFail},
	{name: "expired", answer: answerExpired, check: checkExpired},
	{name: "cancel", answer: answerCancel, check: checkCancel},
	{name: "sigterm", answer: answerSIGTERM, check: checkSIGTERM},
	{name: "renewal", answer: answerRenewal, check: checkRenewal},
	{name: "result-unanswered", answer: answerResultUnanswered, check: checkResultUnanswered},
	{name: "result-refused", answer: answerResultRefused, check: checkResultRefused},
	{name: "callback-unanswered", answer: answerCallbackUnanswered, check: func(*session) {}, export: true},
}

// eventHeartbeat is the number of the heartbeat that gets the special answer. The worker is
// working by then.
const eventHeartbeat = 1

func refusal(status int, kind string, more map[string]any) *Answer {
	body := map[string]any{"error": kind, "message": "sent by the conformance check"}
	maps.Copy(body, more)
	return &Answer{Status: status, Body: body}
}

func answerStartRefused(st *session, c *Call, _ int) *Answer {
	if c.Endpoint != "started" {
		return nil
	}
	st.markEvent()
	st.stopWithin(st.config.Abort)
	return refusal(http.StatusConflict, contract.ErrorTaskAlreadyTerminal, map[string]any{"state": contract.OutcomeCancelled})
}

func checkStartRefused(st *session) {
	if st.event.IsZero() {
		return // without started, which checkCalls reports
	}
	st.require(reqStartedRefused, len(st.calls("heartbeat")) == 0 && !st.completedOtherThan(contract.OutcomeCancelled) && !st.stopped,
		"%s", st.activity())
}

// activity describes what a worker did after it had to abort.
func (st *session) activity() string {
	text := fmt.Sprintf("it then sent %d heartbeats and %d completed", len(st.callsAfter("heartbeat")), len(st.callsAfter("completed")))
	if st.stopped {
		text += fmt.Sprintf(", and its process had not ended after %s", st.config.Abort)
	}
	return text
}

// completedOtherThan reports whether a completed has any other outcome.
func (st *session) completedOtherThan(outcome string) bool {
	for _, c := range st.calls("completed") {
		if c.Fields["outcome"] != outcome {
			return true
		}
	}
	return false
}

func answerStartUnanswered(st *session, c *Call, n int) *Answer {
	switch {
	case c.Endpoint == "started" && n == 0:
		st.markEvent()
		return &Answer{Drop: true}
	case c.Endpoint == "started" && n == 1:
		return refusal(http.StatusServiceUnavailable, "unavailable", nil)
	case c.Endpoint == "completed":
		st.stopWithin(st.config.Abort)
	}
	return nil
}

func checkStartUnanswered(st *session) {
	if n := len(st.calls("started")); n < 3 {
		st.note(noteStartedRetry, fmt.Sprintf("no: it was sent %d times and never answered", n))
		return
	}
	st.note(noteStartedRetry, "yes")
}

// Heartbeats fail for outageIntervals intervals. A worker with backoff sends at most maxRetries
// in that time.
const (
	outageIntervals = 3
	maxRetries      = 16
)

func answerHeartbeatsFail(st *session, c *Call, n int) *Answer {
	if c.Endpoint == "completed" {
		st.stopWithin(st.config.Abort)
	}
	if c.Endpoint != "heartbeat" || n < eventHeartbeat {
		return nil
	}
	st.markEvent()
	switch {
	case c.At.Sub(st.event) > outageIntervals*st.config.Interval:
		return nil
	case n%3 == 2:
		return refusal(http.StatusInternalServerError, "internal", nil)
	}
	return &Answer{Drop: true}
}

func checkHeartbeatsFail(st *session) {
	if !st.reached(reqRetry) {
		return
	}
	failed, answered := 0, 0
	for _, c := range st.callsAfter("heartbeat") {
		if c.Status == http.StatusOK {
			answered++
		} else {
			failed++
		}
	}
	switch {
	case answered == 0 && len(st.calls("completed")) > 0 && st.config.Clock.Now().Sub(st.event) < (outageIntervals+2)*st.config.Interval:
		st.fail(reqRetry, Unproven, "", "the worker ended before heartbeats were answered again: let it work longer")
	default:
		st.require(reqRetry, answered > 0 && len(st.calls("completed")) > 0,
			"after heartbeats had failed for %s, %d heartbeats were answered and %d completed sent", outageIntervals*st.config.Interval, answered, len(st.calls("completed")))
	}
	st.require(reqBackoff, failed <= maxRetries, "it sent %d heartbeats in %s of failures", failed+1, outageIntervals*st.config.Interval)
}

func answerExpired(st *session, c *Call, n int) *Answer {
	if c.Endpoint == "completed" {
		st.stopWithin(st.config.Abort)
	}
	if c.Endpoint == "started" || c.Endpoint == "heartbeat" && n < eventHeartbeat ||
		st.event.IsZero() && (c.Endpoint == "completed" || c.Endpoint == "logs") {
		return nil
	}
	st.markEvent()
	st.stopWithin(st.config.Abort)
	return refusal(http.StatusGone, contract.ErrorTaskExpired, nil)
}

func checkExpired(st *session) {
	if !st.reached(reqExpired) {
		return
	}
	succeeded := false
	for _, c := range st.callsAfter("completed") {
		succeeded = succeeded || c.Fields["outcome"] == contract.OutcomeSucceeded
	}
	st.require(reqExpired, len(st.callsAfter("heartbeat")) == 0 && !succeeded && !st.stopped, "%s", st.activity())
}

func answerCancel(st *session, c *Call, n int) *Answer {
	if c.Endpoint == "completed" {
		st.stopWithin(st.config.Abort)
	}
	if c.Endpoint != "heartbeat" || n < eventHeartbeat {
		return nil
	}
	st.markEvent()
	st.stopWithin(st.config.Grace + st.config.Abort)
	return &Answer{Status: http.StatusOK, Body: map[string]any{"acknowledged": true, "shouldCancel": true, "cancelReason": "user_requested"}}
}

func checkCancel(st *session) {
	if st.reached(reqCancel) {
		st.checkCancelled(reqCancel)
	}
}

// checkCancelled checks the completed of a worker after a cancel request.
func (st *session) checkCancelled(r Requirement) {
	after := st.callsAfter("completed")
	if len(after) == 0 {
		st.fail(r, Failed, "", "got no completed within %s", st.config.Grace)
		return
	}
	first := after[0]
	took := first.At.Sub(st.event)
	st.require(r, first.Fields["outcome"] == contract.OutcomeCancelled && took <= st.config.Grace,
		"got completed after %s with %v", took.Round(time.Millisecond), first.Fields["outcome"])
	_, phase := first.Fields["cancelledDuringPhase"].(string)
	st.note(notePhase, yes(phase || first.Fields["partialProgress"] != nil))
	st.require(reqEnds, !st.stopped, "the process had not ended %s after completed was answered", st.config.Abort)
}

func answerSIGTERM(st *session, c *Call, n int) *Answer {
	if c.Endpoint == "started" && c.Fields["handlesSigterm"] != true {
		st.stopWithin(0)
		return nil
	}
	if c.Endpoint == "heartbeat" && n == eventHeartbeat {
		st.markEvent()
		st.stopWithin(st.config.Grace + st.config.Abort)
		st.worker.terminate()
		return nil
	}
	return answerCancel(st, c, n)
}

func checkSIGTERM(st *session) {
	handles := false
	for _, c := range st.calls("started") {
		handles = handles || c.Fields["handlesSigterm"] == true
	}
	if !handles {
		st.note(noteSIGTERM, "no")
		return
	}
	st.note(noteSIGTERM, "yes")
	if st.reached(reqSIGTERM) {
		st.checkCancelled(reqSIGTERM)
	}
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}
