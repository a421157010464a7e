package httpkit

import (
	"net/http"
	"strings"

	"github.com/sortie-dev/sortie/shared/contract"
)

// openAIPaths is the prefix of the paths of OpenAI's API, which has some paths that Sortie does not
// have.
const openAIPaths = "/v1/"

// UnknownPath is the problem of a request that no route matches, which clients of OpenAI's API
// read as one of its errors.
type UnknownPath struct {
	contract.Problem

	Error UnknownPathError `json:"error"`
}

// UnknownPathError is the error of an UnknownPath.
type UnknownPathError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    string  `json:"code"`
}

// NewUnknownPath returns the problem of an unknown path, or of a method that a path does not have.
func NewUnknownPath(p contract.Problem) UnknownPath {
	e := UnknownPathError{Message: p.Detail, Type: "invalid_request_error", Code: "unknown_url"}
	if p.Status == http.StatusMethodNotAllowed {
		e.Code = "method_not_supported"
	}
	return UnknownPath{p, e}
}

// isOpenAIPath reports whether clients of OpenAI's API may have sent the request.
func isOpenAIPath(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, openAIPaths) }
