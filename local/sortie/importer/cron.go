package importer

import (
	"fmt"
	"slices"
	"strings"
)

// cronLast has the last values of the fields of an expression, from the second.
var cronLast = [...]string{"59", "59", "23", "31", "12", "6"}

// schedule adds the expression of another program to the schedules of the job. One that Sortie
// refuses is removed later, with a comment. starSteps: a day field such as */2 restricts the
// days, as in Kubernetes and Nomad. Otherwise every field that starts with * does not, as in cron.
func (j *Job) schedule(text, zone string, starSteps bool) {
	fields := strings.Fields(text)
	for _, prefix := range []string{"CRON_TZ=", "TZ="} {
		if len(fields) > 0 && strings.HasPrefix(fields[0], prefix) {
			zone, fields = strings.TrimPrefix(fields[0], prefix), fields[1:]
		}
	}
	if first := len(cronLast) - len(fields); first == 0 || first == 1 {
		for i := range fields {
			fields[i] = cronField(fields[i], cronLast[first+i])
		}
		day, weekday := &fields[3-first], &fields[5-first]
		restricted, alsoRestricted := *day != "*", *weekday != "*"
		if starSteps && alsoRestricted {
			*day = starStep(*day, "1-31")
		}
		if starSteps && restricted {
			*weekday = starStep(*weekday, "0-6")
		}
	}
	d := &j.Definition
	expression := strings.Join(fields, " ")
	if expression == "@every_minute" {
		expression = "* * * * *"
	}
	if d.Schedules = append(d.Schedules, expression); zone != "UTC" && !strings.HasPrefix(expression, "@every") {
		d.TimeZone = zone
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

// loseSchedules moves the schedules of the job to the comments.
func (j *Job) loseSchedules(reason string) {
	for len(j.Definition.Schedules) > 0 {
		j.loseSchedule(0, reason)
	}
}

// loseSchedule moves a schedule of the job to the comments, with all that needs one if there is
// no other.
func (j *Job) loseSchedule(number int, reason string) {
	d := &j.Definition
	if number >= len(d.Schedules) {
		return
	}
	j.lose("schedule: %q: %s", strings.TrimSpace(d.Schedules[number]+" "+d.TimeZone), reason)
	if d.Schedules = slices.Delete(d.Schedules, number, number+1); len(d.Schedules) == 0 {
		d.Schedules, d.TimeZone, d.StartingDeadline, d.Jitter = nil, "", "", ""
	}
}
