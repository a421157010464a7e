package console

import (
	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"
)

func (d calendarData) content(l *layout) Node {
	if len(d.Weeks) == 0 {
		return Group{l.jobHead(d.Head), empty("The job has no schedule: it runs on request.", "sortie jobs run "+d.Job.ID)}
	}
	week := func(days []calendarDay) Node {
		return Tr(Map(days, func(day calendarDay) Node { return day.cell(l) }))
	}
	return Group{
		l.jobHead(d.Head),
		P(
			Text(short(160, d.Words)+" "), Span(Class("quiet"), Text("("), code(short(80, d.Job.ScheduleText())), Text(")")),
			Text(". All times of the calendar are those of "), B(Text(d.Zone)), Text("."),
			If(d.Job.Paused, Text(" The job is paused: these are the times if it was resumed now.")),
		),
		Div(Class("calendar"), Table(
			Caption(Class("sr"), Text("Firings of the present week and of the next four")),
			headings(th("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")), TBody(Map(d.Weeks, week)),
		)),
		quiet(Text("Days that have passed show the firings among the newest 100 runs. A firing with ▸▸ was skipped.")),
		Div(Class("cards"), d.skipped(l), d.changes(), d.outage(l)),
	}
}

// cell returns the cell of a day.
func (d calendarDay) cell(l *layout) Node {
	class := ""
	switch {
	case d.Today:
		class = "today"
	case d.Past:
		class = "past"
	}
	fired := func(r calendarRun) Node {
		return l.a(
			runPath(r.RunID), Class("fired "+r.Class), icon(r.Icon), Text(r.Time+" "), Span(Class("sr"), Text(r.Word)), If(r.Count > 1, text(" × ", r.Count)),
		)
	}
	more := ""
	switch {
	case d.Many:
		more = joined("over ", d.More, " more")
	case d.More > 0:
		more = joined(d.More, " more")
	}
	return Td(
		Class(class+choose(d.Empty(), " blank", "")), B(Text(d.Label)), space(), Map(d.Runs, fired), space(),
		Map(d.Times, func(at string) Node { return Span(Class("firing"), Text(at)) }), If(more != "", Span(Class("quiet"), Text(more))), space(),
		If(d.Change != "", Span(Class("change"), icon("again"), Text(d.Change))),
	)
}

// skipped returns the newest skipped firings with their reasons.
func (d calendarData) skipped(l *layout) Node {
	return panel("skipped", "Skipped firings", headings(th("Scheduled"), thNum("Firings"), th("Reason")), d.Skipped, func(r runRow) Node {
		count := 1
		if r.Missed != nil {
			count = r.Missed.Count
		}
		return Tr(Td(l.a(runPath(r.RunID), l.time(r.ScheduledAt))), num(text(count)), wide(bdi(short(200, r.Reason))))
	})
}

// changes returns the changes of the clock.
func (d calendarData) changes() Node {
	change := func(c clockChange) Node {
		day := Group{B(Text(c.Day)), Text(": " + c.Text + ".")}
		if len(c.Firings) == 0 {
			return P(day, Text(" The job does not fire on this day."))
		}
		return Group{
			P(day, Br(), Text("The job fires at:")),
			Ul(Class("times"), Map(c.Firings, func(at string) Node { return Li(Text(at)) })),
		}
	}
	return card(
		"change", "Changes of the clock", Map(d.Changes, change),
		If(len(d.Changes) == 0, quiet(Text("The clock of "+d.Zone+" does not change."))),
	)
}

// outage returns the form for an outage, and what it would do.
func (d calendarData) outage(l *layout) Node {
	at := func(label, name, value string) Node {
		return field(label, Type("datetime-local"), Name(name), Value(value), Required())
	}
	return card(
		"outage", "What an outage would do",
		l.get(
			jobPath(d.Job.ID)+"/calendar#h-outage", Class("filters"), at("Down from (UTC)", "from", d.From), at("until (UTC)", "to", d.To),
			Button(Text("Simulate")),
		),
		quiet(
			Text("Nothing fires while the system is down. What then happens follows from "), code("missed"), Text(", "), code("startingDeadline"),
			Text(" and "), code("constraints.catchUp"), Text(" of the job."),
		),
		with(d.Outage, (*outage).table),
	)
}

func (o *outage) table() Node {
	if len(o.Firings) == 0 {
		return P(Text("The job does not fire in this time or in the day after it."))
	}
	return scrolled(headings(th("Scheduled", "Result", "Fired")), Map(o.Firings, func(f outageFiring) Node {
		return Tr(
			Td(Text(f.ScheduledAt.Format("Mon 2 Jan 15:04:05 MST")), If(f.Count > 1, sub(text(f.Count, " firings until ", f.Until.Format("Mon 2 Jan 15:04:05"))))),
			Td(f.State.badge(), Map(f.Reasons, func(reason string) Node { return sub(Text(short(200, reason))) })),
			Td(Text(f.FiredAt.Format("15:04:05")), If(f.Late != 0, sub(Text(duration(f.Late)+" late")))),
		)
	}))
}
