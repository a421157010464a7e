package sensor

import "strings"

// Settings say which items start runs of a job. Exactly one field is set.
type Settings struct {
	CloudEvent *CloudEvents `json:"cloudEvent,omitempty"`
	Bucket     *Bucket      `json:"bucket,omitempty"`
	Queue      *Queue       `json:"queue,omitempty"`
}

// CloudEvents takes the events that clients send to the address of the job.
type CloudEvents struct {
	// Types and Sources are the types and sources of events that start runs; empty means all. One
	// that ends in "*" is a prefix.
	Types   []string `json:"types,omitempty"`
	Sources []string `json:"sources,omitempty"`
}

// MaxFilters is the maximum number of types, and of sources.
const MaxFilters = 50

// Takes reports whether an event starts a run.
func (c CloudEvents) Takes(e Event) bool {
	return matches(c.Types, e.Type) && matches(c.Sources, e.Source)
}

func matches(filters []string, value string) bool {
	for _, f := range filters {
		if prefix, ok := strings.CutSuffix(f, "*"); f == value || ok && strings.HasPrefix(value, prefix) {
			return true
		}
	}
	return len(filters) == 0
}
