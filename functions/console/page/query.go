package page

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// ListOf returns the parts of a list with commas.
func ListOf(text string) (parts []string) {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// Extended returns the values with further ones: names and values alternate.
func Extended(values url.Values, more ...string) url.Values {
	all := url.Values{}
	maps.Copy(all, values)
	for pair := range slices.Chunk(more, 2) {
		all.Set(pair[0], pair[1])
	}
	return all
}

// Span is a value of the query parameters since and older.
type Span struct {
	Value, Text string
	Length      time.Duration
}

// Spans are in the order of the form.
var Spans = []Span{{"1h", "last hour", time.Hour}, {"24h", "last day", 24 * time.Hour}, {"7d", "last week", 7 * 24 * time.Hour}}

// SinceFlag returns a span as a duration of the command line, which has no days.
func SinceFlag(since string) string {
	if since == "7d" {
		return "168h"
	}
	return since
}
