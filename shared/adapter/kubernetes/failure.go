package kubernetes

import (
	"context"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// said returns the message of the API server, or "" if it did not respond.
func said(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return ""
	}
	return words("", status.Status().Message)
}

// launchFailure returns the fault of a refused creation. It returns nil if it is unclear
// whether the object was created.
func launchFailure(err error) *fault.Fault {
	const what = "cannot launch the machine"
	switch {
	case apierrors.IsTooManyRequests(err):
		return fault.Wrap(err, fault.Throttled, "%s: too many requests to the cluster", what)
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"):
		return fault.Wrap(err, fault.Capacity, "%s: the namespace has no room: %s", what, said(err))
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsNotFound(err),
		apierrors.IsRequestEntityTooLargeError(err), apierrors.IsMethodNotSupported(err):
		return fault.Wrap(err, fault.LaunchRefused, "%s: the cluster refuses it: %s", what, said(err))
	}
	return nil
}

// failure returns the fault of a failed call. what is the action ("look the machine up").
func failure(ctx context.Context, err error, what string) *fault.Fault {
	switch {
	case ctx.Err() != nil:
		return fault.Wrap(errors.Join(ctx.Err(), err), fault.Unavailable, "cannot %s: the cluster did not answer in time", what)
	case apierrors.IsTooManyRequests(err):
		return fault.Wrap(err, fault.Throttled, "cannot %s: too many requests to the cluster", what)
	case apierrors.IsUnauthorized(err):
		return fault.Wrap(err, fault.Unavailable, "cannot %s: the cluster refuses the credentials", what)
	case said(err) != "":
		return fault.Wrap(err, fault.Unavailable, "cannot %s: %s", what, said(err))
	}
	return fault.Wrap(err, fault.Unavailable, "cannot %s: no clear answer from the cluster", what)
}
