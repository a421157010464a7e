package jobs

import (
	"cmp"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/graph"
	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (d jobData) content(l *ui.Layout) Node {
	return Group{
		topOf(l, d.Head), d.facts(l),
		Div(Class("cards"), d.schedule(l), d.results(), If(l.May("runs:write"), d.form(l))),
		graph.Of(d.Why.Graph, d.Job.ID, false).Content(l), d.skipped(l), d.runs(l),
	}
}

func (d jobData) facts(l *ui.Layout) Node {
	j := d.Job
	schedule := Text("on request")
	if j.Sensor != nil {
		schedule = Text("on events")
	}
	if len(j.After) > 0 {
		schedule = Group{Text("after "), ui.Commas(j.After, func(a job.Dependency) Node { return l.A(ui.JobPath(a.Job), Text(ui.Short(60, a.Job))) })}
	}
	if j.Scheduled() {
		schedule = Group{Text(ui.Short(160, d.Words) + " "), Span(Class("quiet"), ui.Mono(ui.Short(80, j.ScheduleText())), Text(" "+cmp.Or(j.TimeZone, "UTC")))}
	}
	utc := ui.With(utcTime(j.NextAt, j.TimeZone), func(at string) Node { return Text(at + ", ") })
	pool := cmp.Or(j.Pool, "default")
	return ui.Facts(
		ui.Fact("Schedule", schedule),
		If(d.Local != "", ui.Fact("Next firing", Text(d.Local+" "), Span(Class("quiet"), utc, l.Time(j.NextAt)))),
		If(j.Paused, ui.Fact("Paused", l.Time(j.PausedAt))),
		ui.Fact("Runs", ui.Bdi(ui.Short(100, d.What))),
		ui.Fact("Pool", l.A(ui.PoolPath(pool), Text(pool))),
		If(len(j.Labels) > 0, ui.Fact("Labels", l.LabelLinks("jobs", j.Labels))),
		ui.Fact("Version", l.A(ui.JobPath(j.ID)+"/document", ui.Texts(j.Version)), ui.Space(), Span(Class("quiet"), l.Time(j.UpdatedAt), ui.By(j.UpdatedBy))),
	)
}

// schedule returns why the job runs or does not run.
func (d jobData) schedule(l *ui.Layout) Node {
	return ui.Card(
		"why", "Schedule", ID("p-why"), ui.Flag("data-part"),
		d.reason(l), ui.With(d.Why.Change, page.ToChange),
		ui.With(d.Why.Last, func(f *contract.JobFiring) Node {
			return ui.Quiet(
				If(f.ScheduledAt.IsZero(), Text("Last run: ")), If(!f.ScheduledAt.IsZero(), Group{Text("Last firing "), l.Time(f.ScheduledAt), Text(": ")}), l.A(ui.RunPath(f.RunID), Text(ui.Choose(f.Skipped, "skipped", f.State))),
				If(f.Message != "", Group{Text(", "), ui.Bdi(ui.Short(200, f.Message))}),
			)
		}),
		ui.Copied("sortie jobs explain "+d.Job.ID),
	)
}

// nextFiring is the reason in the API that the time of the next firing has not been reached.
const nextFiring = "next_firing"

// reason returns the reason in a sentence. That of a job that waits for its next firing has the
// time in the job's zone.
func (d jobData) reason(l *ui.Layout) Node {
	if d.Why.Reason == nextFiring && d.Local != "" {
		return P(Text("The next firing is on "+d.Local+", "), l.Time(d.Job.NextAt), Text("."))
	}
	return P(ui.Bdi(ui.Visible(d.Why.Message)))
}

func (d jobData) results() Node {
	shown := ui.Quiet(Text("The job has not run yet."))
	if r := d.Results; r != nil {
		shown = Group{
			r.picture(),
			Dl(
				Class("facts after"), ui.Fact("Completed", Text(cmp.Or(r.Success(), "–"))),
				ui.Fact("Duration, 95 of 100", Text(ui.Choose(r.P95 != 0, ui.Duration(r.P95), "–"))),
			),
			ui.Quiet(Text("The runs of this page, the newest at the right, as high as they took long. A bar with a cross failed, a ring was skipped.")),
		}
	}
	return ui.Card("results", "Results", ID("p-results"), ui.Flag("data-part"), shown)
}

// form returns the form that runs the job.
func (d jobData) form(l *ui.Layout) Node {
	j := d.Job
	parameters := ui.Quiet(Text("An export has no parameters."))
	if j.Export == nil {
		parameters = Div(
			Class("fields"), Map(d.Parameters, Parameter.Field),
			Label(ui.FieldName("Other parameters"), Textarea(Name("more"), Rows("2"), Placeholder("NAME=VALUE, one a line"))),
		)
	}
	priorities := Map(d.Priorities, func(p spec.Priority) Node { return Option(Text(string(p))) })
	return Section(
		Class("card"), ID("run"), Aria("labelledby", "h-run"), H2(ID("h-run"), Text("Run now")),
		l.Post(
			ui.JobPath(j.ID)+"/run", ui.HiddenField("key", d.Key),
			If(len(j.Inputs) > 0, Div(Class("fields"), inputFields(j.Inputs))), parameters,
			Details(Summary(Text("More")), Div(
				Class("fields"),
				Label(ui.FieldName("Priority"), Select(Name("priority"), Option(Value(""), Text("of the job")), priorities)),
				Label(ui.FieldName("Concurrency key"), Input(Name("concurrencyKey"), Placeholder(cmp.Or(j.ConcurrencyKey, "none")))),
				Label(ui.FieldName("Labels"), Input(Name("labels"), Placeholder("KEY=VALUE, …"))),
				Label(ui.FieldName("At (UTC)"), Input(Type("datetime-local"), Name("at"))),
			)),
			Button(Class("primary"), Text("Run")),
		),
	)
}

// Field returns the field for a parameter, or its value if a field cannot have it.
func (p Parameter) Field() Node {
	name := ui.FieldName(ui.Short(60, p.Name))
	switch {
	case p.Secret != "":
		return Div(name, Span(Class("quiet"), Text("secret "+ui.Short(60, p.Secret))))
	case p.Fixed:
		return Div(name, Code(Class("quiet"), Text(ui.Short(60, p.Value))))
	}
	return Label(name, Input(Name("parameter."+p.Name), Value(p.Value)), ui.HiddenField("default."+p.Name, p.Default))
}

func (d jobData) skipped(l *ui.Layout) Node {
	if len(d.Why.Skipped) == 0 {
		return nil
	}
	return ui.Block("skipped", "Skipped firings", ui.Listing(ui.Headings(ui.Columns("Scheduled", "Run", "Reason")), Map(d.Why.Skipped, func(f contract.JobFiring) Node {
		return Tr(ui.Wide(l.Time(f.ScheduledAt)), ui.Wide(l.A(ui.RunPath(f.RunID), Text(f.RunID))), ui.Wide(ui.Bdi(ui.Short(200, f.Message))))
	})))
}

// runs returns the newest runs of the job.
func (d jobData) runs(l *ui.Layout) Node {
	part := Group{ID("p-runs"), ui.Flag("data-part")}
	if len(d.Runs) == 0 {
		return ui.Block("runs", "Runs", part, ui.Empty("The job has not run yet. Run it from here, or from a terminal:", "sortie jobs run "+d.Job.ID))
	}
	return ui.Block(
		"runs", "Runs", part,
		ui.Listing(
			ui.Headings(ui.Columns("State", "Run", "Trigger", "Scheduled"), ui.NumberColumns("Late"), ui.Columns("Created"), ui.NumberColumns("Duration", "Version"), ui.Columns("Reason")),
			Map(d.Runs, func(r page.RunRow) Node { return historyRow(r, l) }),
		),
		l.Pager(d.Pager),
		ui.Quiet(l.A("runs?jobId="+ui.QueryValue(d.Job.ID), Text("Filter these runs"))),
	)
}

// historyRow returns a row of the runs of one job.
func historyRow(r page.RunRow, l *ui.Layout) Node {
	late := Text("–")
	if r.LatenessSeconds != nil {
		late = Text(ui.Seconds(*r.LatenessSeconds))
	}
	return Tr(
		Data("run", r.RunID), Td(ui.StateOf(r.State, r.Skipped).Badge()), ui.Wide(l.A(ui.RunPath(r.RunID), Text(r.RunID))), ui.Extra(Text(ui.Visible(r.Trigger))),
		ui.Extra(l.Time(r.ScheduledAt), ui.With(r.Missed, func(m *contract.Missed) Node { return ui.SubLine(ui.Texts(m.Count, " firings")) })),
		Td(Class("num extra"), late), Td(Data("label", "created"), l.Time(r.CreatedAt)), ui.Labelled("took", r.Took()),
		Td(Class("num extra"), ui.Texts(r.JobVersion)), ui.Wide(r.ShownReason()),
	)
}

// topOf returns the top of the pages of a job.
func topOf(l *ui.Layout, h jobHead) Node {
	pause := ui.Choose(h.Paused, "resume", "pause")
	tab := func(path, name, label string) Node {
		return Li(l.A(ui.JobPath(h.ID)+path, If(h.Tab == name, Aria("current", "page")), Text(label)))
	}
	return Group{
		P(Class("crumbs"), l.A("jobs", Text("Jobs")), Text(" /")),
		ui.Top(
			Text(h.ID), h.State.Badge(), If(h.Name != "", Group{ui.Space(), Span(Class("quiet"), ui.Bdi(ui.Short(90, h.Name)))}), ui.Space(),
			ui.Actions(
				If(l.May("runs:write"), l.Button(ui.JobPath(h.ID)+"#run", Text("Run…"))), ui.Space(),
				If(l.May("jobs:write") && (h.Scheduled || h.Paused), l.Post(
					ui.JobPath(h.ID)+"/"+pause, ui.HiddenField("back", l.Here), Button(Text(ui.Choose(h.Paused, "Resume", "Pause"))),
				)),
			),
		),
		Ul(
			Class("tabs"), Aria("label", "Pages of the job"),
			tab("", "", "Overview"), tab("/document", "document", "Document"), tab("/calendar", "calendar", "Calendar"),
		),
	}
}
