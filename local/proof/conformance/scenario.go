package conformance

import (
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
)

// scenario is a conversation with its own answers, and what is judged in it.
type scenario struct {
	name   string
	decide func(st *stage, c *Call, n int) *Answer
	judge  func(st *stage)
}

// scenarios are in the order in which they are played.
var scenarios = []scenario{
	{"work", nil, judgeWork},
	{"start-refused", decideStartRefused, judgeStartRefused},
	{"start-unheard", decideStartUnheard, judgeStartUnheard},
	{"heartbeats-fail", decideHeartbeatsFail, judgeHeartbeatsFail},
	{"expired", decideExpired, judgeExpired},
	{"cancel", decideCancel, judgeCancel},
	{"sigterm", decideSigterm, judgeSigterm},
	{"renewal", decideRenewal, judgeRenewal},
	{"result-unheard", decideResultUnheard, judgeResultUnheard},
	{"result-refused", decideResultRefused, judgeResultRefused},
}

// turn is the heartbeat at which most scenarios do what they are about: the
// worker is at work then.
const turn = 1

func refusal(status int, kind string, more map[string]any) *Answer {
	body := map[string]any{"error": kind, "message": "as the check wants it"}
	maps.Copy(body, more)
	return &Answer{Status: status, Body: body}
}

func decideStartRefused(st *stage, c *Call, _ int) *Answer {
	if c.Endpoint != "started" {
		return nil
	}
	st.happens()
	st.within(st.config.Abort)
	return refusal(http.StatusConflict, contract.ErrorTaskAlreadyTerminal, map[string]any{"state": contract.OutcomeCancelled})
}

func judgeStartRefused(st *stage) {
	if st.event.IsZero() {
		return // there was no started, which is judged elsewhere
	}
	st.keeps(sentenceStartedRefused, len(st.of("heartbeat")) == 0 && !st.completedOtherThan(contract.OutcomeCancelled) && !st.stopped,
		"%s", st.wentOn())
}

// wentOn says what a worker did that should have aborted.
func (st *stage) wentOn() string {
	text := fmt.Sprintf("afterwards it sent %d heartbeats and %d completed", len(st.since("heartbeat")), len(st.since("completed")))
	if st.stopped {
		text += fmt.Sprintf(", and its process had not ended after %s", st.config.Abort)
	}
	return text
}

// completedOtherThan says whether a completed has another outcome.
func (st *stage) completedOtherThan(outcome string) bool {
	for _, c := range st.of("completed") {
		if c.Fields["outcome"] != outcome {
			return true
		}
	}
	return false
}

func decideStartUnheard(st *stage, c *Call, n int) *Answer {
	switch {
	case c.Endpoint == "started" && n == 0:
		st.happens()
		return &Answer{Drop: true}
	case c.Endpoint == "started" && n == 1:
		return refusal(http.StatusServiceUnavailable, "unavailable", nil)
	case c.Endpoint == "completed":
		st.within(st.config.Abort)
	}
	return nil
}

func judgeStartUnheard(st *stage) {
	if n := len(st.of("started")); n < 3 {
		st.verdict(noteStartedRetry, Noted, "no: it was sent %d times, and never heard", n)
		return
	}
	st.verdict(noteStartedRetry, Noted, "yes")
}

// burst is how long heartbeats fail, in intervals, and most how many may be sent
// meanwhile by a worker that waits longer after each.
const (
	burst = 3
	most  = 16
)

func decideHeartbeatsFail(st *stage, c *Call, n int) *Answer {
	if c.Endpoint == "completed" {
		st.within(st.config.Abort)
	}
	if c.Endpoint != "heartbeat" || n < turn {
		return nil
	}
	st.happens()
	switch {
	case c.At.Sub(st.event) > burst*st.config.Interval:
		return nil
	case n%3 == 2:
		return refusal(http.StatusInternalServerError, "internal", nil)
	}
	return &Answer{Drop: true}
}

func judgeHeartbeatsFail(st *stage) {
	if !st.occasion(sentenceRetry) {
		return
	}
	failed, heard := 0, 0
	for _, c := range st.since("heartbeat") {
		if c.Status == http.StatusOK {
			heard++
		} else {
			failed++
		}
	}
	switch {
	case heard == 0 && len(st.of("completed")) > 0 && st.config.Clock.Now().Sub(st.event) < (burst+2)*st.config.Interval:
		st.verdict(sentenceRetry, Unproven, "the worker ended before heartbeats were answered again; let it work longer")
	default:
		st.keeps(sentenceRetry, heard > 0 && len(st.of("completed")) > 0,
			"after heartbeats had failed for %s it sent %d that were heard, and %d completed", burst*st.config.Interval, heard, len(st.of("completed")))
	}
	st.keeps(sentenceBackoff, failed <= most, "it sent %d heartbeats in %s while they failed", failed+1, burst*st.config.Interval)
}

func decideExpired(st *stage, c *Call, n int) *Answer {
	if c.Endpoint == "completed" {
		st.within(st.config.Abort)
	}
	if c.Endpoint == "started" || c.Endpoint == "heartbeat" && n < turn || st.event.IsZero() && c.Endpoint == "completed" {
		return nil
	}
	st.happens()
	st.within(st.config.Abort)
	return refusal(http.StatusGone, contract.ErrorTaskExpired, nil)
}

func judgeExpired(st *stage) {
	if !st.occasion(sentenceGone) {
		return
	}
	succeeded := false
	for _, c := range st.since("completed") {
		succeeded = succeeded || c.Fields["outcome"] == contract.OutcomeSucceeded
	}
	st.keeps(sentenceGone, len(st.since("heartbeat")) == 0 && !succeeded && !st.stopped, "%s", st.wentOn())
}

func decideCancel(st *stage, c *Call, n int) *Answer {
	if c.Endpoint == "completed" {
		st.within(st.config.Abort)
	}
	if c.Endpoint != "heartbeat" || n < turn {
		return nil
	}
	st.happens()
	st.within(st.config.Grace + st.config.Abort)
	return &Answer{Status: http.StatusOK, Body: map[string]any{"acknowledged": true, "shouldCancel": true, "cancelReason": "user_requested"}}
}

func judgeCancel(st *stage) {
	if st.occasion(sentenceCancel) {
		st.judgeCancelled(sentenceCancel)
	}
}

// judgeCancelled judges what a worker does that is to end.
func (st *stage) judgeCancelled(s Sentence) {
	after := st.since("completed")
	if len(after) == 0 {
		st.verdict(s, Broken, "no completed came within %s", st.config.Grace)
		return
	}
	first := after[0]
	took := first.At.Sub(st.event)
	st.keeps(s, first.Fields["outcome"] == contract.OutcomeCancelled && took <= st.config.Grace,
		"completed came after %s with %v", took.Round(time.Millisecond), first.Fields["outcome"])
	_, phase := first.Fields["cancelledDuringPhase"].(string)
	st.verdict(notePhase, Noted, "%s", yes(phase || first.Fields["partialProgress"] != nil))
	st.keeps(sentenceTolerant, !st.stopped, "the process had not ended %s after completed was answered", st.config.Abort)
}

func decideSigterm(st *stage, c *Call, n int) *Answer {
	if c.Endpoint == "started" && c.Fields["handlesSigterm"] != true {
		st.within(0)
		return nil
	}
	if c.Endpoint == "heartbeat" && n == turn {
		st.happens()
		st.within(st.config.Grace + st.config.Abort)
		st.worker.terminate()
		return nil
	}
	return decideCancel(st, c, n)
}

func judgeSigterm(st *stage) {
	handles := false
	for _, c := range st.of("started") {
		handles = handles || c.Fields["handlesSigterm"] == true
	}
	if !handles {
		st.verdict(noteSigterm, Noted, "it does not say so")
		return
	}
	st.verdict(noteSigterm, Noted, "it says so")
	if st.occasion(sentenceSigterm) {
		st.judgeCancelled(sentenceSigterm)
	}
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}
