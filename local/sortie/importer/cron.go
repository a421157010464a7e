package importer

import (
	"fmt"
	"strings"
)

// cronLast has the last values of the fields of an expression.
var cronLast = [...]string{"59", "23", "31", "12", "6"}

// schedule sets the schedule of the job to an expression of another program. One that Sortie
// refuses is removed later, with a comment. starSteps: a day field such as */2 restricts the
// days, as in Kubernetes and Nomad. Otherwise every field that starts with * does not, as in cron.
func (j *Job) schedule(text, zone string, starSteps bool) {
	fields := strings.Fields(text)
	for _, prefix := range []string{"CRON_TZ=", "TZ="} {
		if len(fields) > 0 && strings.HasPrefix(fields[0], prefix) {
			zone, fields = strings.TrimPrefix(fields[0], prefix), fields[1:]
		}
	}
	d := &j.Definition
	if len(fields) == len(cronLast) {
		for i, field := range fields {
			fields[i] = cronField(field, cronLast[i])
		}
		day, weekday := fields[2], fields[4]
		if starSteps && weekday != "*" {
			fields[2] = starStep(day, "1-31")
		}
		if starSteps && day != "*" {
			fields[4] = starStep(weekday, "0-6")
		}
	}
	if d.Schedule = strings.Join(fields, " "); zone != "UTC" && !strings.HasPrefix(d.Schedule, "@every") {
		d.TimeZone = zone
	}
	if d.Schedule == "@every_minute" {
		d.Schedule = "* * * * *"
	}
}

// cronField replaces ? by *, and the step after a single value by one after a range.
func cronField(field, last string) string {
	items := strings.Split(field, ",")
	for i, item := range items {
		if rest, ok := strings.CutPrefix(item, "?"); ok {
			items[i] = "*" + rest
		} else if value, step, ok := strings.Cut(item, "/"); ok && value != "*" && !strings.Contains(value, "-") {
			items[i] = fmt.Sprintf("%s-%s/%s", value, last, step)
		}
	}
	return strings.Join(items, ",")
}

// starStep replaces * with a step by a range with that step.
func starStep(field, span string) string {
	items := strings.Split(field, ",")
	for i, item := range items {
		if step, ok := strings.CutPrefix(item, "*/"); ok && step != "1" {
			items[i] = span + "/" + step
		}
	}
	return strings.Join(items, ",")
}

// loseSchedule moves the schedule of the job to the comments.
func (j *Job) loseSchedule(reason string) {
	d := &j.Definition
	j.lose("schedule: %q: %s", strings.TrimSpace(strings.Join([]string{d.Schedule, d.TimeZone}, " ")), reason)
	d.Schedule, d.TimeZone, d.StartingDeadline, d.Jitter = "", "", "", ""
}
