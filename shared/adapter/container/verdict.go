package container

import (
	"context"
	"errors"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// wordsLimit is the longest part of an engine's message that a fault contains, in bytes.
const wordsLimit = 500

// words returns the engine's message on one line.
func words(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	text = strings.TrimPrefix(text, "Error response from daemon: ")
	if len(text) > wordsLimit {
		text = strings.ToValidUTF8(text[:wordsLimit], "") + "…"
	}
	return text
}

// says reports whether the message contains one of the phrases, which are in lower case.
func says(err error, phrases ...string) bool {
	text := strings.ToLower(err.Error())
	for _, phrase := range phrases {
		if strings.Contains(text, phrase) {
			return true
		}
	}
	return false
}

// nameInUse reports whether a creation was refused because a container has the name.
func nameInUse(err error) bool {
	return errdefs.IsConflict(err) && says(err, "name") || says(err, "is already in use by", "already in use")
}

// full reports whether the engine has no memory or storage left. Engines report that with the
// status of an internal error.
func full(err error) bool {
	return says(err, "no space left on device", "cannot allocate memory", "not enough memory", "disk quota exceeded", "insufficient resources")
}

// unusable reports whether a program or its configuration cannot be started. Engines report
// that with various statuses.
func unusable(err error) bool {
	return says(err, "executable file not found", "no such file or directory: oci", "not a directory: oci", "exec format error",
		"permission denied: oci", "exec: ", "oci runtime attempted to invoke a command that was not found", "no command specified", "no entrypoint or cmd")
}

// launchFailure returns the fault of a launch. A fault other than Unavailable and Throttled
// means that the engine refused the launch.
func launchFailure(ctx context.Context, err error) error {
	const what = "launch the container"
	switch {
	case ctx.Err() != nil:
	case full(err):
		return fault.Wrap(err, fault.Capacity, "cannot %s: the engine has no room: %s", what, words(err))
	case errdefs.IsNotFound(err) && says(err, "image"):
		return fault.Wrap(err, fault.Image, "cannot %s: the engine does not have the image: %s", what, words(err))
	case unusable(err), errdefs.IsInvalidArgument(err), errdefs.IsPermissionDenied(err), errdefs.IsNotFound(err), errdefs.IsConflict(err),
		errdefs.IsUnauthorized(err), errdefs.IsFailedPrecondition(err), errdefs.IsNotImplemented(err):
		return fault.Wrap(err, fault.LaunchRefused, "cannot %s: the engine refuses it: %s", what, words(err))
	}
	return failure(ctx, err, what)
}

// pullFailure returns the fault of a pull. The engine reports a registry that refuses or does
// not respond as an internal error.
func pullFailure(ctx context.Context, err error, image string) error {
	switch {
	case ctx.Err() != nil:
		return failure(ctx, err, "pull the image "+image)
	case errdefs.IsResourceExhausted(err), says(err, "toomanyrequests", "too many requests", "rate limit"):
		return fault.Wrap(err, fault.Throttled, "cannot pull the image %s: too many requests: %s", image, words(err))
	case full(err):
		return fault.Wrap(err, fault.Capacity, "cannot pull the image %s: the engine has no room: %s", image, words(err))
	case client.IsErrConnectionFailed(err), errdefs.IsUnavailable(err):
		return failure(ctx, err, "pull the image "+image)
	}
	return fault.Wrap(err, fault.Image, "cannot pull the image %s: %s", image, words(err))
}

// failure returns the fault of a failed call. what is the action ("look the container up").
func failure(ctx context.Context, err error, what string) error {
	f, known := errors.AsType[*fault.Fault](err)
	switch {
	case ctx.Err() != nil:
		return fault.Wrap(errors.Join(ctx.Err(), err), fault.Unavailable, "cannot %s: the container engine did not answer in time", what)
	case known:
		return fault.Wrap(err, fault.Unavailable, "cannot %s: %s", what, f.Message)
	case errdefs.IsResourceExhausted(err):
		return fault.Wrap(err, fault.Throttled, "cannot %s: too many requests to the container engine: %s", what, words(err))
	}
	return fault.Wrap(err, fault.Unavailable, "cannot %s: no clear answer from the container engine: %s", what, words(err))
}
