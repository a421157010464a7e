package httpkit

import (
	"net/http"

	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// trustHeader is the header with which a request requires trusted models.
const trustHeader = "X-Trust-Policy"

// StrictTrust reports whether a request requires a model that a trusted key has signed. The
// fault is InvalidRequest with the header.
func StrictTrust(r *http.Request) (bool, error) {
	switch given := r.Header.Values(trustHeader); {
	case len(given) == 0:
		return false, nil
	case len(given) == 1 && given[0] == "strict":
		return true, nil
	}
	return false, fault.Invalid(trustHeader, "unknown trust policy, want strict, or no header %s", trustHeader)
}
