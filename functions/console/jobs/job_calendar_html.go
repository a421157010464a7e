package jobs

import (
	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
)

func (d calendarData) content(l *ui.Layout) Node {
	if len(d.Weeks) == 0 {
		return Group{topOf(l, d.Head), ui.Empty("The job has no schedule: it runs on request.", "sortie jobs run "+d.Job.ID)}
	}
	week := func(days []calendarDay) Node {
		return Tr(Map(days, func(day calendarDay) Node { return day.cell(l) }))
	}
	return Group{
		topOf(l, d.Head),
		P(
			Text(ui.Short(160, d.Words)+" "), Span(Class("quiet"), Text("("), ui.Mono(ui.Short(80, d.Job.ScheduleText())), Text(")")),
			Text(". All times of the calendar are those of "), B(Text(d.Zone)), Text("."),
			If(d.Job.Paused, Text(" The job is paused: these are the times if it was resumed now.")),
		),
		Div(Class("calendar"), Table(
			Caption(Class("sr"), Text("Firings of the present week and of the next four")),
			ui.Headings(ui.Columns("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")), TBody(Map(d.Weeks, week)),
		)),
		ui.Quiet(Text("Days that have passed show the firings among the newest 100 runs. A firing with ▸▸ was skipped.")),
		Div(Class("cards"), d.skipped(l), d.changes(), d.outage(l)),
	}
}

// cell returns the cell of a day.
func (d calendarDay) cell(l *ui.Layout) Node {
	class := ""
	switch {
	case d.Today:
		class = "today"
	case d.Past:
		class = "past"
	}
	fired := func(r calendarRun) Node {
		return l.A(
			ui.RunPath(r.RunID), Class("fired "+r.Class), ui.Icon(r.Icon), Text(r.Time+" "), Span(Class("sr"), Text(r.Word)), If(r.Count > 1, ui.Texts(" × ", r.Count)),
		)
	}
	more := ""
	switch {
	case d.Many:
		more = ui.Joined("over ", d.More, " more")
	case d.More > 0:
		more = ui.Joined(d.More, " more")
	}
	return Td(
		Class(class+ui.Choose(d.Empty(), " blank", "")), B(Text(d.Label)), ui.Space(), Map(d.Runs, fired), ui.Space(),
		Map(d.Times, func(at string) Node { return Span(Class("firing"), Text(at)) }), If(more != "", Span(Class("quiet"), Text(more))), ui.Space(),
		If(d.Change != "", Span(Class("change"), ui.Icon("again"), Text(d.Change))),
	)
}

// skipped returns the newest skipped firings with their reasons.
func (d calendarData) skipped(l *ui.Layout) Node {
	return ui.Panel("skipped", "Skipped firings", ui.Headings(ui.Columns("Scheduled"), ui.NumberColumns("Firings"), ui.Columns("Reason")), d.Skipped, func(r page.RunRow) Node {
		count := 1
		if r.Missed != nil {
			count = r.Missed.Count
		}
		return Tr(Td(l.A(ui.RunPath(r.RunID), l.Time(r.ScheduledAt))), ui.Num(ui.Texts(count)), ui.Wide(ui.Bdi(ui.Short(200, r.Reason))))
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
	return ui.Card(
		"change", "Changes of the clock", Map(d.Changes, change),
		If(len(d.Changes) == 0, ui.Quiet(Text("The clock of "+d.Zone+" does not change."))),
	)
}

// outage returns the form for an outage, and what it would do.
func (d calendarData) outage(l *ui.Layout) Node {
	at := func(label, name, value string) Node {
		return ui.Field(label, Type("datetime-local"), Name(name), Value(value), Required())
	}
	return ui.Card(
		"outage", "What an outage would do",
		l.Get(
			ui.JobPath(d.Job.ID)+"/calendar#h-outage", Class("filters"), at("Down from (UTC)", "from", d.From), at("until (UTC)", "to", d.To),
			Button(Text("Simulate")),
		),
		ui.Quiet(
			Text("Nothing fires while the system is down. What then happens follows from "), ui.Mono("missed"), Text(", "), ui.Mono("startingDeadline"),
			Text(" and "), ui.Mono("constraints.catchUp"), Text(" of the job."),
		),
		ui.With(d.Outage, (*outage).table),
	)
}

func (o *outage) table() Node {
	if len(o.Firings) == 0 {
		return P(Text("The job does not fire in this time or in the day after it."))
	}
	return ui.Scrolled(ui.Headings(ui.Columns("Scheduled", "Result", "Fired")), Map(o.Firings, func(f outageFiring) Node {
		return Tr(
			Td(Text(f.ScheduledAt.Format("Mon 2 Jan 15:04:05 MST")), If(f.Count > 1, ui.SubLine(ui.Texts(f.Count, " firings until ", f.Until.Format("Mon 2 Jan 15:04:05"))))),
			Td(f.State.Badge(), Map(f.Reasons, func(reason string) Node { return ui.SubLine(Text(ui.Short(200, reason))) })),
			Td(Text(f.FiredAt.Format("15:04:05")), If(f.Late != 0, ui.SubLine(Text(ui.Duration(f.Late)+" late")))),
		)
	}))
}
