package httpkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// WriteJSON answers with v as application/json. Unless the handler has said
// something else, the answer is not to be stored.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
	text, err := JSON(v)
	if err != nil {
		return err
	}
	return WriteBytes(w, status, "application/json", text)
}

// JSON is v as this API writes it: without escapes for HTML.
func JSON(v any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("cannot write the answer: %w", err)
	}
	return text.Bytes(), nil
}

// WriteBytes answers with a text of that content type. A client that went away
// while it was written is no error of the handler.
func WriteBytes(w http.ResponseWriter, status int, contentType string, text []byte) error {
	header := w.Header()
	if header.Get("Cache-Control") == "" {
		header.Set("Cache-Control", "no-store")
	}
	header.Set("Content-Type", contentType)
	header.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text)
	return nil
}

// Matches says whether etag (with its quotes) is in the list of an If-Match or
// If-None-Match header. weak compares as If-None-Match asks (RFC 9110, §8.8.3.2):
// whether one is weak does not matter; without it a weak tag matches nothing.
func Matches(list, etag string, weak bool) bool {
	if strings.TrimSpace(list) == "*" {
		return true
	}
	for list = strings.TrimSpace(list); list != ""; list = strings.TrimLeft(list, ", \t") {
		isWeak := strings.HasPrefix(list, "W/")
		list = strings.TrimPrefix(list, "W/")
		if !strings.HasPrefix(list, `"`) {
			return false
		}
		end := strings.IndexByte(list[1:], '"')
		if end < 0 {
			return false
		}
		tag := list[:end+2]
		list = list[end+2:]
		if weak && tag == strings.TrimPrefix(etag, "W/") || !weak && !isWeak && tag == etag {
			return true
		}
	}
	return false
}
