package httpkit

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/sortie-dev/sortie/shared/base/encoded"
)

// WriteJSON writes v as application/json. It sets Cache-Control to no-store
// unless the handler has set it.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
	scratch := scratches.Get().(*[]byte) //nolint:forcetypeassert // see scratches
	defer scratches.Put(scratch)
	text, err := appendJSON((*scratch)[:0], v)
	if err != nil {
		return err
	}
	if cap(text) <= scratchMost {
		*scratch = text
	}
	return WriteBytes(w, status, "application/json", text)
}

// WriteAccepted writes the response to a request that created a resource at path. The status is
// 202, or 200 if an earlier request created it.
func WriteAccepted(w http.ResponseWriter, existing bool, path string, v any) error {
	status := http.StatusAccepted
	if existing {
		status = http.StatusOK
	}
	w.Header().Set("Location", path)
	return WriteJSON(w, status, v)
}

// Warn adds the texts to the response as Warning headers with the code 299. Call it before the
// status is written.
func Warn(w http.ResponseWriter, texts ...string) {
	for _, text := range texts {
		w.Header().Add("Warning", `299 - "`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text)+`"`)
	}
}

// Warnings returns the texts that Warn has added to a header.
func Warnings(h http.Header) (texts []string) {
	for _, value := range h.Values("Warning") {
		text := strings.TrimSuffix(strings.TrimPrefix(value, `299 - "`), `"`)
		texts = append(texts, strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(text))
	}
	return texts
}

// WriteRemoved writes the response to a deletion: 204 without a body.
func WriteRemoved(w http.ResponseWriter) error {
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// JSON encodes v without HTML escapes.
func JSON(v any) ([]byte, error) { return appendJSON(nil, v) }

func appendJSON(to []byte, v any) ([]byte, error) {
	text, err := encoded.Any(to, v)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the response: %w", err)
	}
	return append(text, '\n'), nil
}

// scratches are buffers of WriteJSON, of at most scratchMost bytes each.
var scratches = sync.Pool{New: func() any { return new([]byte) }}

const scratchMost = 4 << 20 // above a page of 1,000 runs

// WriteBytes writes a response with the content type. It ignores write errors: the client has
// disconnected.
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

// Matches reports whether etag, with its quotes, is in the list of an If-Match or If-None-Match
// header. weak selects weak comparison, as for If-None-Match (RFC 9110, §8.8.3.2). Otherwise
// weak tags never match.
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
