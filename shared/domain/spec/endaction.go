package spec

import (
	"strconv"
	"strings"
)

// EndAction names an action that follows an event of a run, or the constraint that the run
// violated after its start. The first action of an event has the name of the event; the second one
// of onFailure is "onFailure-2". The name of an onRetry ends with its attempt, as in "onRetry#1".
type EndAction string

// The events that have actions.
const (
	OnSuccess EndAction = "onSuccess"
	OnFailure EndAction = "onFailure"
	OnSkip    EndAction = "onSkip"
	OnRetry   EndAction = "onRetry" // an attempt failed, and the run is retried
	OnLate    EndAction = "onLate"  // an attempt exceeds the expected run time
)

// MaxEventActions is the maximum number of actions of an event of a run.
const MaxEventActions = 10

// EndActions lists the events of a run that can have actions.
func EndActions() []EndAction { return []EndAction{OnSuccess, OnFailure, OnSkip, OnRetry, OnLate} }

// The separators in an EndAction: EVENT, EVENT-NUMBER for the second and later actions of the
// event, and EVENT#ATTEMPT or EVENT-NUMBER#ATTEMPT for events of an attempt.
const (
	actionSeparator  = "-"
	attemptSeparator = "#"
)

// EndActionOf names the action with the index, from 0, of an event. attempt is 0 for an event that
// happens at most once in a run.
func EndActionOf(event EndAction, index, attempt int) EndAction {
	name := string(event)
	if index > 0 {
		name += actionSeparator + strconv.Itoa(index+1)
	}
	if attempt > 0 {
		name += attemptSeparator + strconv.Itoa(attempt)
	}
	return EndAction(name)
}

// Event returns the event of the action, such as onFailure, or the violated constraint. attempt is
// the attempt of an onRetry; 0 for other events.
func (e EndAction) Event() (event EndAction, attempt int) {
	event, _, attempt = e.Parts()
	return event, attempt
}

// Parts returns the event, the index of the action, from 0, and the attempt.
func (e EndAction) Parts() (event EndAction, index, attempt int) {
	name, number, _ := strings.Cut(string(e), attemptSeparator)
	attempt, _ = strconv.Atoi(number)
	name, number, listed := strings.Cut(name, actionSeparator)
	if listed {
		index, _ = strconv.Atoi(number)
		index--
	}
	return EndAction(name), index, attempt
}

// On returns the actions of an event, in order.
func (a *Actions) On(event EndAction) []Action {
	if a == nil {
		return nil
	}
	first := map[EndAction]*Action{OnSuccess: a.OnSuccess, OnFailure: a.OnFailure, OnSkip: a.OnSkip, OnRetry: a.OnRetry, OnLate: a.OnLate}[event]
	if first == nil {
		return nil
	}
	return append([]Action{*first}, a.Further[event]...)
}
