package console

import (
	"cmp"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (d jobData) content(l *layout) Node {
	return Group{
		l.jobHead(d.Head), d.facts(l),
		Div(Class("cards"), d.schedule(l), d.results(), If(l.May("runs:write"), d.form(l))),
		d.skipped(l), d.runs(l),
	}
}

func (d jobData) facts(l *layout) Node {
	j := d.Job
	schedule := Text("on request")
	if j.Scheduled() {
		schedule = Group{Text(short(160, d.Words) + " "), Span(Class("quiet"), code(short(80, j.ScheduleText())), Text(" "+cmp.Or(j.TimeZone, "UTC")))}
	}
	utc := with(utcTime(j.NextAt, j.TimeZone), func(at string) Node { return Text(at + ", ") })
	pool := cmp.Or(j.Pool, "default")
	return facts(
		fact("Schedule", schedule),
		If(d.Local != "", fact("Next firing", Text(d.Local+" "), Span(Class("quiet"), utc, l.time(j.NextAt)))),
		If(j.Paused, fact("Paused", l.time(j.PausedAt))),
		fact("Runs", bdi(short(100, d.What))),
		fact("Pool", l.a(poolPath(pool), Text(pool))),
		If(len(j.Labels) > 0, fact("Labels", l.labelLinks("jobs", j.Labels))),
		fact("Version", l.a(jobPath(j.ID)+"/document", text(j.Version)), space(), Span(Class("quiet"), l.time(j.UpdatedAt), by(j.UpdatedBy))),
	)
}

// by returns who has changed a record; it is empty for an empty name.
func by(name string) Node {
	return If(name != "", Text(" by "+visible(name)))
}

// schedule returns why the job runs or does not run.
func (d jobData) schedule(l *layout) Node {
	return card(
		"why", "Schedule", ID("p-why"), flag("data-part"),
		P(bdi(visible(d.Why.Message))), with(d.Why.Change, toChange),
		with(d.Why.Last, func(f *contract.JobFiring) Node {
			return quiet(
				Text("Last firing "), l.time(f.ScheduledAt), Text(": "), l.a(runPath(f.RunID), Text(choose(f.Skipped, "skipped", f.State))),
				If(f.Message != "", Group{Text(", "), bdi(short(200, f.Message))}),
			)
		}),
		copied("sortie jobs explain "+d.Job.ID),
	)
}

func (d jobData) results() Node {
	shown := quiet(Text("The job has not run yet."))
	if r := d.Results; r != nil {
		shown = Group{
			r.picture(),
			Dl(
				Class("facts after"), fact("Completed", Text(cmp.Or(r.Success(), "–"))),
				fact("Duration, 95 of 100", Text(choose(r.P95 != 0, duration(r.P95), "–"))),
			),
			quiet(Text("The runs of this page, the newest at the right, as high as they took long. A bar with a cross failed, a ring was skipped.")),
		}
	}
	return card("results", "Results", ID("p-results"), flag("data-part"), shown)
}

// form returns the form that runs the job.
func (d jobData) form(l *layout) Node {
	j := d.Job
	parameters := quiet(Text("An export has no parameters."))
	if j.Export == nil {
		parameters = Div(
			Class("fields"), Map(d.Parameters, parameter.field),
			Label(label("Other parameters"), Textarea(Name("more"), Rows("2"), Placeholder("NAME=VALUE, one a line"))),
		)
	}
	priorities := Map(d.Priorities, func(p run.Priority) Node { return Option(Text(string(p))) })
	return Section(
		Class("card"), ID("run"), Aria("labelledby", "h-run"), H2(ID("h-run"), Text("Run now")),
		l.post(
			jobPath(j.ID)+"/run", hiddenField("key", d.Key),
			If(len(j.Inputs) > 0, Div(Class("fields"), inputFields(j.Inputs))), parameters,
			Details(Summary(Text("More")), Div(
				Class("fields"),
				Label(label("Priority"), Select(Name("priority"), Option(Value(""), Text("of the job")), priorities)),
				Label(label("Concurrency key"), Input(Name("concurrencyKey"), Placeholder(cmp.Or(j.ConcurrencyKey, "none")))),
				Label(label("Labels"), Input(Name("labels"), Placeholder("KEY=VALUE, …"))),
				Label(label("At (UTC)"), Input(Type("datetime-local"), Name("at"))),
			)),
			Button(Class("primary"), Text("Run")),
		),
	)
}

// label returns the name of a field.
func label(name string) Node { return Span(Class("label"), Text(name)) }

// field returns the field for a parameter, or its value if a field cannot have it.
func (p parameter) field() Node {
	name := label(short(60, p.Name))
	switch {
	case p.Secret != "":
		return Div(name, Span(Class("quiet"), Text("secret "+short(60, p.Secret))))
	case p.Fixed:
		return Div(name, Code(Class("quiet"), Text(short(60, p.Value))))
	}
	return Label(name, Input(Name("parameter."+p.Name), Value(p.Value)), hiddenField("default."+p.Name, p.Default))
}

func (d jobData) skipped(l *layout) Node {
	if len(d.Why.Skipped) == 0 {
		return nil
	}
	return section("skipped", "Skipped firings", listing(headings(th("Scheduled", "Run", "Reason")), Map(d.Why.Skipped, func(f contract.JobFiring) Node {
		return Tr(wide(l.time(f.ScheduledAt)), wide(l.a(runPath(f.RunID), Text(f.RunID))), wide(bdi(short(200, f.Message))))
	})))
}

// runs returns the newest runs of the job.
func (d jobData) runs(l *layout) Node {
	part := Group{ID("p-runs"), flag("data-part")}
	if len(d.Runs) == 0 {
		return section("runs", "Runs", part, empty("The job has not run yet. Run it from here, or from a terminal:", "sortie jobs run "+d.Job.ID))
	}
	return section(
		"runs", "Runs", part,
		listing(
			headings(th("State", "Run", "Trigger", "Scheduled"), thNum("Late"), th("Created"), thNum("Duration", "Version"), th("Reason")),
			Map(d.Runs, func(r runRow) Node { return r.jobRow(l) }),
		),
		l.pager(d.Pager),
		quiet(l.a("runs?jobId="+queryValue(d.Job.ID), Text("Filter these runs"))),
	)
}

// jobRow returns a row of the runs of one job.
func (r runRow) jobRow(l *layout) Node {
	late := Text("–")
	if r.LatenessSeconds != nil {
		late = Text(seconds(*r.LatenessSeconds))
	}
	return Tr(
		Data("run", r.RunID), Td(stateOf(r.State, r.Skipped).badge()), wide(l.a(runPath(r.RunID), Text(r.RunID))), extra(Text(visible(r.Trigger))),
		extra(l.time(r.ScheduledAt), with(r.Missed, func(m *contract.Missed) Node { return sub(text(m.Count, " firings")) })),
		Td(Class("num extra"), late), Td(Data("label", "created"), l.time(r.CreatedAt)), labelled("took", r.took()),
		Td(Class("num extra"), text(r.JobVersion)), wide(r.reason()),
	)
}
