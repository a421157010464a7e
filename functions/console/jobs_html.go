package console

import (
	"cmp"
	"time"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"
)

func (d jobsData) content(l *layout) Node {
	return Group{
		head(Text("Jobs"), If(l.May("jobs:write"), actions(l.button("new-job", Text("New job"))))),
		l.presets("Presets", d.Shows),
		l.get(
			"jobs", Class("filters"), Role("search"), Aria("label", "Filter the jobs"),
			with(d.Filter.Get("show"), func(show string) Node { return hiddenField("show", show) }),
			field("Id or name", Type("search"), Name("q"), Value(visible(d.Filter.Get("q")))),
			field("Labels", Name("label"), Value(visible(d.Filter.Get("label"))), Placeholder("team=data,env!=dev")),
			Button(Text("Filter")),
		),
		l.chips(d.Chips), d.list(l),
	}
}

// list returns the jobs of the page.
func (d jobsData) list(l *layout) Node {
	acts := l.May("runs:write") || l.May("jobs:write")
	switch {
	case len(d.Jobs) > 0:
		return Group{
			listing(
				headings(th("Job", "State", "Schedule", "Next firing", "Newest results"), thNum("Success"), If(acts, thHidden("Actions"))),
				Map(d.Jobs, func(j jobRow) Node { return j.row(l, acts) }),
			),
			quiet(text("Results are the last ", resultsShown, " runs of each job: the newest at the right, as high as the run took long. A bar with a cross failed, a ring was skipped.")),
			l.pages(d.First, "« First", d.Next, "Next ›"),
		}
	case d.Next != "":
		return Group{empty("No job of this part of the list matches.", ""), l.pages("", "", d.Next, "Search on ›")}
	case len(d.Chips) > 0:
		return empty("No job matches these filters.", "")
	}
	return empty("There are no jobs yet. Store one from a file:", "sortie jobs apply -f nightly-report.yaml")
}

// row returns a row of the list of jobs. acts: the list has a column of actions.
func (j jobRow) row(l *layout, acts bool) Node {
	cells := Group{
		wide(l.a(jobPath(j.ID), Text(j.ID)), If(j.Name != "", sub(bdi(short(80, j.Name)))), sub(bdi(short(80, j.What))), labelsLine(j.Labels)),
		Td(j.State.badge(), If(j.Paused, sub(Text("since "), l.time(j.PausedAt)))),
	}
	schedule := j.ScheduleText()
	if schedule == "" {
		cells = append(cells, Td(Class("wide extra"), none("–")))
	} else {
		cells = append(cells, wide(Text(short(120, j.Words)), sub(code(short(60, schedule)), Text(" "+cmp.Or(j.TimeZone, "UTC")))))
	}
	if j.Local == "" {
		cells = append(cells, Td(Data("label", "next"), Class("extra"), none("–")))
	} else {
		utc := with(utcTime(j.NextAt, j.TimeZone), func(at string) Node { return Text(", " + at) })
		cells = append(cells, Td(Data("label", "next"), Text(j.Local), sub(l.time(j.NextAt), utc)))
	}
	if j.Results == nil {
		cells = append(cells, extra(none("none of late")), Td(Class("num extra"), none("–")))
	} else {
		cells = append(cells, Td(j.Results.picture()), Td(
			Class("num extra"), Text(cmp.Or(j.Results.Success(), "–")), with(j.Results.P95, func(d time.Duration) Node { return sub(Text("p95 " + duration(d))) }),
		))
	}
	return Tr(Data("job", j.ID), ID("job-"+j.ID), flag("data-part"), cells, If(acts, Td(Class("acts"), j.run(l), space(), j.pause(l))))
}

func (j jobRow) run(l *layout) Node {
	return If(l.May("runs:write"), l.post(jobPath(j.ID)+"/run", hiddenField("key", j.Key), Button(Aria("label", "Run "+j.ID+" now"), Text("Run"))))
}

func (j jobRow) pause(l *layout) Node {
	path, word := choose(j.Paused, "/resume", "/pause"), choose(j.Paused, "Resume", "Pause")
	return If(l.May("jobs:write") && (j.ScheduleText() != "" || j.Paused), l.post(
		jobPath(j.ID)+path, hiddenField("back", l.Here), Button(Aria("label", word+" "+j.ID), Text(word)),
	))
}
