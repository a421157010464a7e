// Package label has the labels of jobs and runs: their syntax, their changes, and the selectors
// that lists filter by. Syntax and selectors are those of Kubernetes. It is pure.
package label

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/base/limit"
)

// The maximum number of labels of a job or a run, and the maximum size of all their keys and
// values, in bytes. The record and each event of a run contain them.
const (
	Most = 32
	Size = 4 << 10
)

// maxPrefix is the maximum length of the prefix of a key (Kubernetes: a DNS subdomain).
const maxPrefix = 253

const alphanumeric = limit.Letters + limit.Digits

var (
	name   = limit.Form{First: alphanumeric, Rest: alphanumeric + "-_.", Last: alphanumeric, Most: 63}
	domain = limit.Form{First: limit.Lower + limit.Digits, Rest: limit.Lower + limit.Digits + "-", Last: limit.Lower + limit.Digits, Most: maxPrefix}
)

const (
	wantKey   = "want 1 to 63 letters, digits, '-', '_' and '.', the first and the last a letter or a digit, and before them at most a DNS name with a slash"
	wantValue = "want at most 63 letters, digits, '-', '_' and '.', the first and the last a letter or a digit"
)

// ValidKey reports whether the text is a key: a name, or a DNS name, a slash and a name.
func ValidKey(text string) bool {
	prefix, rest, prefixed := strings.Cut(text, "/")
	if !prefixed {
		return name.Matches(text)
	}
	return len(prefix) <= maxPrefix && name.Matches(rest) &&
		!slices.ContainsFunc(strings.Split(prefix, "."), func(part string) bool { return !domain.Matches(part) })
}

// ValidValue reports whether the text is a value. The empty text is one.
func ValidValue(text string) bool { return text == "" || name.Matches(text) }

// Problem describes a wrong label. Key is empty for a problem of all labels together.
type Problem struct{ Key, Text string }

// Check returns the problems of the labels of a job or a run, ordered by key.
func Check(labels map[string]string) (found []Problem) {
	if len(labels) > Most {
		return []Problem{{"", fmt.Sprintf("%d labels, want at most %d", len(labels), Most)}}
	}
	size := 0
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		value := labels[key]
		size += len(key) + len(value)
		if !ValidKey(key) {
			found = append(found, Problem{key, "malformed key of a label, " + wantKey})
		} else if !ValidValue(value) {
			found = append(found, Problem{key, fmt.Sprintf("malformed value %q of a label, %s", limit.Cut(value, limit.FileName), wantValue)})
		}
	}
	if size > Size && found == nil {
		found = []Problem{{"", fmt.Sprintf("%d bytes of keys and values, want at most %d", size, Size)}}
	}
	return found
}

// Change maps keys to their new values; nil removes the label.
type Change map[string]*string

// Of returns the change that sets the labels.
func Of(labels map[string]string) Change {
	change := make(Change, len(labels))
	for key, value := range labels {
		change[key] = &value
	}
	return change
}

// ParseChange reads a change from texts: KEY=VALUE sets a label, KEY- removes it.
func ParseChange(texts []string) (Change, error) {
	change := Change{}
	for _, text := range texts {
		key, value, set := strings.Cut(text, "=")
		removes := !set
		if removes {
			key, set = strings.CutSuffix(text, "-")
		}
		if !set || !ValidKey(key) || !ValidValue(value) {
			return nil, fmt.Errorf("malformed label %q, want KEY=VALUE, or KEY- to remove it", limit.Cut(text, limit.FileName))
		}
		change[key] = &value
		if removes {
			change[key] = nil
		}
	}
	return change, nil
}

// Check returns the problems of the change itself: those of Check for its keys and values.
func (c Change) Check() []Problem {
	labels := make(map[string]string, len(c))
	for key, value := range c {
		if labels[key] = ""; value != nil {
			labels[key] = *value
		}
	}
	return Check(labels)
}

// Apply returns the labels after the change; nil without labels. It does not modify its argument.
func (c Change) Apply(labels map[string]string) map[string]string {
	if len(c) == 0 {
		return labels
	}
	changed := make(map[string]string, len(labels)+len(c))
	maps.Copy(changed, labels)
	for key, value := range c {
		if value == nil {
			delete(changed, key)
		} else {
			changed[key] = *value
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return changed
}

// Texts returns the texts that ParseChange reads, ordered by key.
func (c Change) Texts() (texts []string) {
	for _, key := range slices.Sorted(maps.Keys(c)) {
		if c[key] == nil {
			texts = append(texts, key+"-")
		} else {
			texts = append(texts, key+"="+*c[key])
		}
	}
	return texts
}

// String returns the texts, separated by commas.
func (c Change) String() string { return strings.Join(c.Texts(), ",") }

// Text returns the labels as KEY=VALUE, ordered by key and separated by commas.
func Text(labels map[string]string) string { return Of(labels).String() }

// Field returns the path of a label in a request, or of all labels for an empty key.
func Field(key string) string {
	if key == "" {
		return "labels"
	}
	return "labels." + limit.Cut(key, limit.FileName)
}
