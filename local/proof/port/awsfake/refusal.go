package awsfake

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
)

// refusal is an error response of a service.
type refusal struct {
	code, message string
	// status is the HTTP status; 0 means 400.
	status int
	// more has the fields besides type and message.
	more map[string]any
}

func (r *refusal) Error() string { return r.code + ": " + r.message }

func (r *refusal) httpStatus() int {
	if r.status == 0 {
		return http.StatusBadRequest
	}
	return r.status
}

// body returns the response in the form of AWS JSON.
func (r *refusal) body(namespace string) ([]byte, error) {
	fields := map[string]any{"__type": namespace + "#" + r.code, "message": r.message}
	maps.Copy(fields, r.more)
	return json.Marshal(fields)
}

func refuse(code, format string, args ...any) *refusal {
	return &refusal{code: code, message: fmt.Sprintf(format, args...)}
}

// invalid returns the error for a request that DynamoDB or the fake rejects.
func invalid(format string, args ...any) error {
	return refuse("ValidationException", format, args...)
}
