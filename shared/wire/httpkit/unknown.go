package httpkit

import (
	"net/http"
	"strings"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// openAIPaths is the prefix of the paths of OpenAI's API. Some of its paths do not exist in
// Sortie.
const openAIPaths = "/v1/"

// UnknownPath is the problem for a request that no route matches. Clients of OpenAI's API can
// read it as one of its errors.
type UnknownPath struct {
	contract.Problem

	Error UnknownPathError `json:"error"`
}

// UnknownPathError is the error in the form of OpenAI's API.
type UnknownPathError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    string  `json:"code"`
}

// NewUnknownPath returns the problem for an unknown path, or for a method that the path does
// not have.
func NewUnknownPath(p contract.Problem) UnknownPath {
	e := UnknownPathError{Message: p.Detail, Type: "invalid_request_error", Code: "unknown_url"}
	if p.Status == http.StatusMethodNotAllowed {
		e.Code = "method_not_supported"
	}
	return UnknownPath{p, e}
}

// isOpenAIPath reports whether the request may come from a client of OpenAI's API.
func isOpenAIPath(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, openAIPaths) }
