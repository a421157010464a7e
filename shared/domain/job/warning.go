package job

import (
	"fmt"
	"strconv"
	"strings"
)

// Warnings returns sentences about parts of a definition that are valid but probably not
// intended. Each begins with the field.
func (d Definition) Warnings() []string {
	var found []string
	for field, text := range d.expressions() {
		parts, fields, err := cronParts(text)
		if err != nil {
			continue // a macro
		}
		for i, w := range parts {
			at := w.at
			for item := range strings.SplitSeq(w.text, ",") {
				if warning := fields[i].warning(item); warning != "" {
					found = append(found, fmt.Sprintf("%s: position %d: %s", field, at, warning))
				}
				at += len(item) + 1
			}
		}
	}
	return append(found, d.sensorWarnings()...)
}

// literalStars returns a warning for each filter with a * that is not at its end.
func literalStars(field string, filters []string) (found []string) {
	for i, text := range filters {
		if strings.Contains(strings.TrimSuffix(text, "*"), "*") {
			found = append(found, fmt.Sprintf("%s.%d: only a * at the end of %q is a wildcard", field, i, text))
		}
	}
	return found
}

// warning returns a warning if the step of a valid item is larger than its range, so that it
// selects only the first value; empty otherwise.
func (f cronField) warning(item string) string {
	span, step, stepped := strings.Cut(item, "/")
	by, err := strconv.Atoi(step)
	if !stepped || err != nil {
		return ""
	}
	first, last := f.first, f.first+f.count()-1
	if low, high, ranged := strings.Cut(span, "-"); ranged {
		first, _ = f.value(word{low, 0}, false)
		last, _ = f.value(word{high, 0}, true)
	}
	if first == last || by <= last-first {
		return ""
	}
	return fmt.Sprintf("the step of %q is larger than the range %d to %d of the %s, so that it selects %d alone", item, first, last, f.name, first)
}

// zoneOf returns the time zone of a word such as CRON_TZ=UTC, which sets the zone of a schedule
// in other programs.
func zoneOf(word string) (zone string, ok bool) {
	for _, prefix := range []string{"CRON_TZ=", "TZ="} {
		if len(word) >= len(prefix) && strings.EqualFold(word[:len(prefix)], prefix) {
			return word[len(prefix):], true
		}
	}
	return "", false
}
