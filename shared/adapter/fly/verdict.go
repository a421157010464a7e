package fly

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// verdict classifies an error of the client.
type verdict int

const (
	fine verdict = iota
	// unknown means that the call may or may not have been applied.
	unknown
	// nameTaken means that a live machine has the name.
	nameTaken
	// noMachine and noApp mean that Fly does not know the machine or the app.
	noMachine
	noApp
	// notYet means that the wait timed out.
	notYet
	throttled
	noRoom
	badImage
	badToken
	// wrongState means that the machine's state does not allow the call.
	wrongState
	// busy means that another caller holds the machine's lease.
	busy
	// changed means that the machine no longer has the version that the call named.
	changed
	refused
)

// classify returns the verdict on an error. Several of Fly's errors share a status and differ
// only in their text.
func classify(err error) verdict {
	if err == nil {
		return fine
	}
	answer, ok := errors.AsType[*apiError](err)
	if !ok {
		return unknown
	}
	text := strings.ToLower(answer.Error())
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	status := answer.status
	capacity := answer.code == "insufficient_capacity" || has("insufficient memory", "insufficient cpu", "insufficient resources",
		"no capacity", "could not reserve resource", "over the allowed quota", "consider other regions")
	switch {
	case status == http.StatusConflict && has("already_exists"):
		return nameTaken
	case status == http.StatusTooManyRequests:
		return throttled
	case status == http.StatusRequestTimeout && has("failed to reach desired state"):
		return notYet
	case status == http.StatusRequestTimeout || status >= 500:
		return unknown
	case status < 400:
		return unknown // not a documented response
	case capacity:
		return noRoom
	case status == http.StatusConflict && has("lease"):
		return busy
	case status == http.StatusConflict && has("version"):
		return changed
	case status == http.StatusConflict && has("aborted"):
		return busy
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return badToken
	case status == http.StatusNotFound && has("app not found", "could not find app"):
		return noApp
	case has("manifest", "image"):
		return badImage
	case status == http.StatusNotFound:
		return noMachine
	case status == http.StatusPreconditionFailed:
		return wrongState
	}
	return refused
}

// launchFailure returns the fault of a launch that created no machine.
func launchFailure(ctx context.Context, err error) error {
	const what = "launch the machine"
	if ctx.Err() == nil {
		switch classify(err) {
		case noRoom:
			return fault.Wrap(err, fault.Capacity, "cannot %s: Fly has no room", what)
		case badImage:
			return fault.Wrap(err, fault.Image, "cannot %s: Fly cannot use the image", what)
		case badToken:
			return fault.Wrap(err, fault.LaunchRefused, "cannot %s: Fly refuses the token", what)
		case noApp:
			return fault.Wrap(err, fault.LaunchRefused, "cannot %s: Fly does not know the app", what)
		case refused, wrongState, noMachine:
			return fault.Wrap(err, fault.LaunchRefused, "cannot %s: Fly refuses it", what)
		}
	}
	return failure(ctx, err, what)
}

// failure returns the fault of a failed call. what is the action ("look the machine up").
func failure(ctx context.Context, err error, what string) error {
	switch verdict := classify(err); {
	case ctx.Err() != nil:
		return fault.Wrap(errors.Join(ctx.Err(), err), fault.Unavailable, "cannot %s: Fly did not answer in time", what)
	case verdict == throttled:
		return fault.Wrap(err, fault.Throttled, "cannot %s: too many requests to Fly", what)
	case verdict == badToken:
		return fault.Wrap(err, fault.Unavailable, "cannot %s: Fly refuses the token", what)
	case verdict == noApp:
		return fault.Wrap(err, fault.Unavailable, "cannot %s: Fly does not know the app", what)
	case verdict == busy:
		return fault.Wrap(err, fault.Unavailable, "cannot %s: another caller has the machine's lease", what)
	case verdict == changed:
		return fault.Wrap(err, fault.Unavailable, "cannot %s: the machine was changed meanwhile", what)
	case verdict == unknown:
		return fault.Wrap(err, fault.Unavailable, "cannot %s: no clear answer from Fly", what)
	}
	return fault.Wrap(err, fault.Unavailable, "cannot %s now", what)
}
