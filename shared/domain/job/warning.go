package job

import (
	"fmt"
	"iter"
	"slices"
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
	return slices.Concat(found, d.listWarnings(), d.timeWarnings(), d.sensorWarnings())
}

// listWarnings returns the warnings about lists without an effect.
func (d Definition) listWarnings() (found []string) {
	if d.Schedules != nil && len(d.Schedules) == 0 {
		found = append(found, "schedules: an empty list is no schedule")
	}
	if d.After != nil && len(d.After) == 0 {
		found = append(found, "after: an empty list names no job")
	}
	for i, text := range d.Schedules {
		if first := slices.Index(d.Schedules, text); first < i {
			found = append(found, fmt.Sprintf("schedules.%d: the same as schedules.%d, and each time fires once", i, first))
		}
	}
	return found
}

// timeWarnings returns the warnings about times and limits without an effect.
func (d Definition) timeWarnings() (found []string) {
	if times, ok := d.Times(); ok && d.StartAt != "" && d.EndAt != "" {
		if _, fires := times.Next(times.start.Add(-1), times.start); !fires {
			found = append(found, "schedule: no time from startAt to endAt")
		}
	}
	total := d.Deadline.Value()
	for field, each := range d.runTimes() {
		if d.Deadline != "" && each.Value() >= total {
			found = append(found, fmt.Sprintf("%s: %s is never exceeded, because the deadline of all attempts is %s", field, each, d.Deadline))
		}
	}
	return found
}

// runTimes returns the limits of the time of an attempt, by field.
func (d Definition) runTimes() iter.Seq2[string, Duration] {
	return func(yield func(field string, limit Duration) bool) {
		c := d.Constraints
		if c == nil {
			return
		}
		if c.MaxExpectedRunTime != "" && !yield("constraints.maxExpectedRunTime", c.MaxExpectedRunTime) {
			return
		}
		if c.MaxAllowedRunTime != "" {
			yield(allowedTime, c.MaxAllowedRunTime)
		}
	}
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
