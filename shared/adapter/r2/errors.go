package r2

import (
	"errors"
	"net/http"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// named converts an error of the SDK to one of the port. doing completes "the object store
// cannot ...".
func named(err error, doing string) error {
	if err == nil {
		return nil
	}
	switch status(err) {
	case http.StatusNotFound:
		switch code(err) {
		case "NoSuchBucket":
			return fault.Wrap(err, fault.Unavailable, "the object store has no such bucket; see the configuration")
		case "NoSuchUpload": // aborted meanwhile; the whole transfer goes again
			return fault.Wrap(err, fault.Unavailable, "the object store gave up an upload")
		}
		return port.ErrNotFound
	case http.StatusPreconditionFailed:
		return port.ErrChanged
	case http.StatusUnauthorized, http.StatusForbidden:
		return fault.Wrap(err, fault.Unavailable, "the object store does not accept our credentials")
	}
	return fault.Wrap(err, fault.Unavailable, "the object store cannot %s now", doing)
}

// status returns the HTTP status of the response in err, or 0.
func status(err error) int {
	if answer, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		return answer.HTTPStatusCode()
	}
	return 0
}

func code(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return ""
}
