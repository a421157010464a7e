package openai

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/port"
)

// Error is the body of an error response. It is also the data of the last event of a failed
// stream.
type Error struct {
	Error ErrorDetail `json:"error"`
}

// ErrorDetail describes an error.
type ErrorDetail struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	// Param is the invalid member of the request; null for any other error.
	Param *string `json:"param"`
	Code  string  `json:"code"`
}

// Types of errors.
const (
	typeInvalid        = "invalid_request_error"
	typeAuthentication = "authentication_error"
	typePermission     = "permission_error"
	typeNotFound       = "not_found_error"
	typeRate           = "rate_limit_error"
	typeServer         = "server_error"
)

// NewError returns the error for an HTTP status and the code of a fault. param is the invalid
// field of the task; port.FieldPrompt for a prompt that is too long.
func NewError(status int, code fault.Code, message, param string) Error {
	e := ErrorDetail{Message: message, Type: typeInvalid, Code: codeOf(code, param)}
	switch {
	case status == http.StatusUnauthorized:
		e.Type = typeAuthentication
	case status == http.StatusForbidden:
		e.Type = typePermission
	case status == http.StatusNotFound:
		e.Type = typeNotFound
	case status == http.StatusTooManyRequests:
		e.Type = typeRate
	case status >= http.StatusInternalServerError:
		e.Type = typeServer
	}
	if param != "" {
		e.Param = &param
	}
	return Error{e}
}

// NewBodyError is NewError for a fault of a Parse function. param is a member of the body, so a
// param "prompt" does not mean a prompt that is too long.
func NewBodyError(status int, code fault.Code, message, param string) Error {
	e := NewError(status, code, message, param)
	e.Error.Code = strings.ToLower(string(code))
	return e
}

// codeOf returns the code of the OpenAI API for a fault. If the API has none, it returns the
// fault's code in lower case.
func codeOf(code fault.Code, param string) string {
	switch code {
	case fault.ModelUnknown:
		return "model_not_found"
	case fault.Unauthenticated:
		return "invalid_api_key"
	case fault.AdmissionReject, fault.Throttled:
		return "rate_limit_exceeded"
	case fault.NotFound:
		if param == FieldPrevious {
			return "previous_response_not_found"
		}
	case fault.InvalidParams:
		if param == port.FieldPrompt {
			return "context_length_exceeded"
		}
	}
	return strings.ToLower(string(code))
}

// FaultOf returns the failure of a task as a fault.
func FaultOf(f inference.Failure) *fault.Fault {
	message := f.Message
	if f.Reason != "" {
		message += ": " + f.Reason
	}
	of := fault.New(f.Code, "%s", message)
	of.Field = f.Field
	return of
}

var toolMember = regexp.MustCompile(`^tools\.([0-9]+)\.function\.`)

// Named returns the error with its param renamed. names maps fields of tasks to members of the
// request's body. Only the part before the first dot is renamed, or up to a later dot if names has
// that.
func (e Error) Named(names map[string]string) Error {
	if e.Error.Param == nil {
		return e
	}
	param := *e.Error.Param
	if names["tools.function"] != "" { // the API has the members of the function in the tool
		param = toolMember.ReplaceAllString(param, "tools.$1.")
		e.Error.Param = &param
	}
	for head, tail := param, ""; ; {
		if name, ok := names[head]; ok {
			name += tail
			e.Error.Param = &name
			break
		}
		dot := strings.LastIndex(head, ".")
		if dot < 0 {
			break
		}
		head, tail = head[:dot], head[dot:]+tail
	}
	return e
}
