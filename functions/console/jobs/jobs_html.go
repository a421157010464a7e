package jobs

import (
	"cmp"
	"time"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/ui"
)

func (d jobsData) content(l *ui.Layout) Node {
	return Group{
		ui.Top(Text("Jobs"), If(l.May("jobs:write"), ui.Actions(l.Button("new-job", Text("New job"))))),
		l.Presets("Presets", d.Shows),
		l.Get(
			"jobs", Class("filters"), Role("search"), Aria("label", "Filter the jobs"),
			ui.With(d.Filter.Get("show"), func(show string) Node { return ui.HiddenField("show", show) }),
			ui.Field("Id or name", Type("search"), Name("q"), Value(ui.Visible(d.Filter.Get("q")))),
			ui.Field("Labels", Name("label"), Value(ui.Visible(d.Filter.Get("label"))), Placeholder("team=data,env!=dev")),
			Button(Text("Filter")),
		),
		l.Chips(d.Chips), d.list(l),
	}
}

// list returns the jobs of the page.
func (d jobsData) list(l *ui.Layout) Node {
	acts := l.May("runs:write") || l.May("jobs:write")
	switch {
	case len(d.Jobs) > 0:
		listing := ui.Listing(
			ui.Headings(ui.Columns("Job", "State", "Schedule", "Next firing", "Newest results"), ui.NumberColumns("Success"), If(acts, ui.HiddenColumn("Actions"))),
			Map(d.Jobs, func(j jobRow) Node { return j.row(l, acts) }),
		)
		if acts { // one form for all rows: the page is half as large
			listing = l.Post("jobs", ui.HiddenField("back", l.Here), listing)
		}
		return Group{
			listing,
			ui.Quiet(ui.Texts("Results are the last ", resultsShown, " runs of each job: the newest at the right, as high as the run took long. A bar with a cross failed, a ring was skipped.")),
			l.Pages(d.First, "« First", d.Next, "Next ›"),
		}
	case d.Next != "":
		return Group{ui.Empty("No job of this part of the list matches.", ""), l.Pages("", "", d.Next, "Search on ›")}
	case len(d.Chips) > 0:
		return ui.Empty("No job matches these filters.", "")
	}
	return ui.Empty("There are no jobs yet. Store one from a file:", "sortie jobs apply -f nightly-report.yaml")
}

// row returns a row of the list of jobs. acts: the list has a column of actions.
func (j jobRow) row(l *ui.Layout, acts bool) Node {
	cells := Group{
		ui.Wide(l.A(ui.JobPath(j.ID), Text(j.ID)), If(j.Name != "", ui.SubLine(ui.Bdi(ui.Short(80, j.Name)))), ui.SubLine(ui.Bdi(ui.Short(80, j.What))), ui.LabelsLine(j.Labels)),
		Td(j.State.Badge(), If(j.Paused, ui.SubLine(Text("since "), l.Time(j.PausedAt)))),
	}
	cells = append(cells, j.starts(l))
	if j.Local == "" {
		cells = append(cells, Td(Data("label", "next"), Class("extra"), ui.None("–")))
	} else {
		utc := ui.With(utcTime(j.NextAt, j.TimeZone), func(at string) Node { return Text(", " + at) })
		cells = append(cells, Td(Data("label", "next"), Text(j.Local), ui.SubLine(l.Time(j.NextAt), utc)))
	}
	if j.Results == nil {
		cells = append(cells, ui.Extra(ui.None("none yet")), Td(Class("num extra"), ui.None("–")))
	} else {
		cells = append(cells, Td(j.Results.sketch()), Td(
			Class("num extra"), Text(cmp.Or(j.Results.Success(), "–")), ui.With(j.Results.P95, func(d time.Duration) Node { return ui.SubLine(Text("p95 " + ui.Duration(d))) }),
		))
	}
	return Tr(Data("job", j.ID), ID("job-"+j.ID), ui.Flag("data-part"), cells, If(acts, Td(Class("acts"), j.run(l), ui.Space(), j.pause(l))))
}

// starts returns the cell with what starts the job.
func (j jobRow) starts(l *ui.Layout) Node {
	schedule := j.ScheduleText()
	switch {
	case schedule != "":
		return ui.Wide(Text(ui.Short(120, j.Words)), ui.SubLine(ui.Mono(ui.Short(60, schedule)), Text(" "+cmp.Or(j.TimeZone, "UTC"))))
	case len(j.After) > 0:
		more := len(j.After) - afterShown
		return ui.Wide(
			Text("after "), ui.Commas(j.After[:min(afterShown, len(j.After))], func(id string) Node { return l.A(ui.JobPath(id), Text(ui.Short(60, id))) }),
			If(more > 0, ui.Texts(" and ", more, " more")),
		)
	case j.Sensor:
		return ui.Wide(Text("on events"))
	}
	return Td(Class("wide extra"), ui.None("–"))
}

// run returns the button that runs the job. Its key makes a form that is sent twice start one run.
func (j jobRow) run(l *ui.Layout) Node {
	return If(l.May("runs:write"), Button(Name("key"), Value(j.Key), l.To(ui.JobPath(j.ID)+"/run"), Aria("label", "Run "+j.ID+" now"), Text("Run")))
}

func (j jobRow) pause(l *ui.Layout) Node {
	path, word := ui.Choose(j.Paused, "/resume", "/pause"), ui.Choose(j.Paused, "Resume", "Pause")
	return If(l.May("jobs:write") && (j.ScheduleText() != "" || j.Paused), Button(l.To(ui.JobPath(j.ID)+path), Aria("label", word+" "+j.ID), Text(word)))
}
