package asl

import (
	"strings"
	"time"
)

// parseTimestamp parses the language's subset of RFC 3339: an upper case T, seconds, and any
// number of fraction digits. If utc is true, as in a Wait, the zone must be Z. Otherwise it can
// be an offset [recorded].
func parseTimestamp(text string, utc bool) (time.Time, bool) {
	const shape = "0000-00-00T00:00:00"
	if len(text) <= len(shape) {
		return time.Time{}, false
	}
	for i := range len(shape) {
		digit := text[i] >= '0' && text[i] <= '9'
		if shape[i] == '0' && !digit || shape[i] != '0' && text[i] != shape[i] {
			return time.Time{}, false
		}
	}
	if strings.Contains(text, ",") || utc && !strings.HasSuffix(text, "Z") {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339, text)
	return t, err == nil
}

// formatTime formats a time for the context object.
func formatTime(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}
