package entityapi

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// limitOf returns the value of ?limit, or the value otherwise if the request has no limit. If
// the limit is invalid, it answers the request and returns false.
func limitOf(w http.ResponseWriter, r *http.Request, otherwise int) (int, bool) {
	given := r.URL.Query().Get("limit")
	if given == "" {
		return otherwise, true
	}
	n, err := strconv.Atoi(given)
	if err != nil || n < 1 || n > limitMost {
		fail(w, http.StatusBadRequest, "VALIDATION_ERROR", "Invalid limit: it must be between 1 and 1000",
			map[string]string{"limit": clip(given)})
		return 0, false
	}
	return n, true
}

// clip limits the length of client input that is repeated in an answer.
func clip(s string) string { return s[:min(len(s), 80)] }

func answer(w http.ResponseWriter, body any) { write(w, http.StatusOK, body) }

// fail answers with an error of the API.
func fail(w http.ResponseWriter, status int, code, message string, details map[string]string) {
	if details == nil {
		details = map[string]string{}
	}
	write(w, status, map[string]any{"error": code, "message": message, "details": details})
}

func busy(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "0")
	fail(w, http.StatusServiceUnavailable, "BACKEND_ERROR", "Backend unavailable", nil)
}

func write(w http.ResponseWriter, status int, body any) {
	b, err := json.Marshal(body)
	if err != nil { // all answers can be encoded
		http.Error(w, `{"error":"INTERNAL_ERROR"}`, http.StatusInternalServerError)
		return
	}
	b = append(b, '\n')
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	if h, ok := w.(*interrupted); ok {
		h.left = int64(len(b)) / 2
	}
	w.WriteHeader(status)
	_, _ = w.Write(b) // it fails if the client has disconnected
}
