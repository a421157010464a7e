package run

import (
	"strconv"
	"strings"
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

// endAction names the action with the index, from 0, of an event. attempt is 0 for an event that
// happens at most once in a run.
func endAction(event EndAction, index, attempt int) EndAction {
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
	event, _, attempt = e.parts()
	return event, attempt
}

func (e EndAction) parts() (event EndAction, index, attempt int) {
	name, number, _ := strings.Cut(string(e), attemptSeparator)
	attempt, _ = strconv.Atoi(number)
	name, number, listed := strings.Cut(name, actionSeparator)
	if listed {
		index, _ = strconv.Atoi(number)
		index--
	}
	return EndAction(name), index, attempt
}

// actionsOn returns the actions of an event of the run.
func (r Run) actionsOn(event EndAction) []Action {
	if r.Actions == nil {
		return nil
	}
	first := r.Actions.first(event)
	if first == nil {
		return nil
	}
	return append([]Action{*first}, r.Actions.Further[event]...)
}

// first returns the first action of an event; nil without one.
func (a *Actions) first(event EndAction) *Action {
	switch event {
	case OnSuccess:
		return a.OnSuccess
	case OnFailure:
		return a.OnFailure
	case OnSkip:
		return a.OnSkip
	case OnRetry:
		return a.OnRetry
	case OnLate:
		return a.OnLate
	}
	return nil
}

// Follows reports whether an action of the type can follow an event of a run. The other types
// are only for violated constraints.
func (t ActionType) Follows() bool {
	return t == ActionWebhook || t == ActionTriggerJob || t == ActionNotify
}

// actOn adds the effects of the actions of an event. attempt is as in endAction.
func (d *draft) actOn(event EndAction, attempt int) {
	for i, action := range d.actionsOn(event) {
		if !action.Type.Follows() {
			continue
		}
		e := Effect{Kind: EffectAct, Action: endAction(event, i, attempt)}
		if !d.State.Terminal() {
			e.At = d.now
		}
		d.effects = append(d.effects, e)
		d.changed = true
	}
}
