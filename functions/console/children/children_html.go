package children

import (
	"strconv"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (d listData) content(l *ui.Layout) Node {
	counts := d.List.Counts
	return Group{
		P(Class("crumbs"), l.A("runs", Text("Runs")), Text(" / "), l.A(ui.RunPath(d.RunID), ui.Bdi(ui.Short(60, d.What)), Text(" "), ui.Mono(d.RunID)), Text(" /")),
		ui.Top(Text("Children")),
		ui.With(counts, func(c *contract.Children) Node {
			return Group{
				Div(ID("counts"), ui.Flag("data-part"), summary(*c)),
				Div(ID("states"), ui.Flag("data-part"), l.Presets("States", d.presets(*c))),
			}
		}),
		Div(ID("list"), ui.Flag("data-part"), d.list(l)),
	}
}

// presets returns the lists of the children in each state.
func (d listData) presets(c contract.Children) []ui.Preset {
	all := []ui.Preset{{Label: "All " + strconv.Itoa(c.Total), Path: pathOf(d.RunID), Current: d.State == ""}}
	for _, s := range sharesOf(c) {
		all = append(all, ui.Preset{Label: s.Look.Word + " " + strconv.Itoa(s.Count), Path: pathOf(d.RunID) + "?state=" + s.State, Current: d.State == s.State})
	}
	return all
}

func (d listData) list(l *ui.Layout) Node {
	switch {
	case len(d.List.Children) > 0:
		return Group{table(l, d.List.Children), l.Pages(d.Pager.Newest, "« First", d.Pager.Older, "Next ›")}
	case d.List.Counts == nil:
		return ui.Empty("This run has no children. A job with items or a matrix has a child for each:", "sortie jobs run JOB --items FILE")
	}
	return ui.Empty("No child is in this state.", "")
}

// Content returns the part of the page of the run. It is nil without children.
func (p *Part) Content(l *ui.Layout) Node {
	if p == nil {
		return nil
	}
	shown := "The first children"
	if p.State != "" {
		shown = "The first " + p.State + " children"
	}
	return ui.Block("children", "Children", Div(
		Class("card"), summary(p.Counts), links(l, p.RunID, p.Counts),
		If(len(p.Rows) > 0, Group{
			If(p.More || p.State != "", ui.Quiet(Text(shown+":"))), table(l, p.Rows),
			ui.Quiet(l.A(pathOf(p.RunID), ui.Texts("All ", p.Counts.Total, " children"))),
		}),
	))
}

// summary returns how many children are in which state, as a sentence and a bar.
func summary(c contract.Children) Node {
	shares := sharesOf(c)
	return Group{
		P(
			B(ui.Texts(c.Succeeded+c.Failed+c.Cancelled, " of ", c.Total)), Text(" have ended"),
			ui.Texts("; at most ", c.MaxParallel, " at once, at most ", c.MaxFailures, ui.Choose(c.MaxFailures == 1, " failure", " failures"), " permitted."),
			ui.With(stoppedTexts[c.Stopped], func(why string) Node { return Group{ui.Space(), B(Text(why))} }),
		),
		SVG(
			Class("shares"), ui.Attribute("viewBox", "0 0 ", barWidth, " 14"), ui.Attribute("preserveAspectRatio", "none"), Role("img"),
			Aria("label", "The children by state; the list below has the numbers"),
			Map(shares, func(s share) Node {
				return El("rect", Class(s.Look.Class), ui.Attribute("x", s.X), ui.Attribute("y", 0), ui.Attribute("width", max(s.W-2, 1)), ui.Attribute("height", 14),
					El("title", ui.Texts(s.Count, " ", s.State)))
			}),
		),
	}
}

// links returns the numbers of the children in each state, as links to their lists.
func links(l *ui.Layout, runID string, c contract.Children) Node {
	return Ul(Class("counts"), Map(sharesOf(c), func(s share) Node {
		return Li(l.A(pathOf(runID)+"?state="+s.State, s.Look.Badge(), Text(" "), B(ui.Texts(s.Count))))
	}))
}

// table returns children with their items and results.
func table(l *ui.Layout, rows []contract.RunChild) Node {
	return ui.Listing(
		ui.Headings(ui.Columns("State"), ui.NumberColumns("Index"), ui.Columns("Item", "Run"), ui.NumberColumns("Attempt", "Duration"), ui.Columns("Reason")),
		Map(rows, func(c contract.RunChild) Node { return row(l, c) }),
	)
}

func row(l *ui.Layout, c contract.RunChild) Node {
	run, attempt, took := ui.None("–"), Text("–"), Text("–")
	if c.RunID != "" {
		run = l.A(ui.RunPath(c.RunID), ui.Mono(ui.Short(80, c.RunID)))
	}
	if c.Attempt > 0 {
		attempt = ui.Texts(c.Attempt)
	}
	if c.DurationSeconds != nil {
		took = Text(ui.Seconds(*c.DurationSeconds))
	}
	return Tr(
		Td(lookOf(c.State).Badge(), If(c.State == "running" && c.RunState != "", ui.SubLine(Text(c.RunState)))),
		ui.Labelled("index", ui.Texts(c.Index)), ui.Wide(ui.Bdi(ui.Short(160, c.Item))), ui.Wide(run), ui.Labelled("attempt", attempt), ui.Labelled("took", took),
		ui.Wide(
			ui.With(c.Fault, func(f *contract.Fault) Node { return ui.Bdi(ui.Short(160, f.Message)) }),
			ui.With(c.ExitCode, func(code *int) Node { return If(*code != 0 && c.Fault == nil, ui.Texts("exit code ", *code)) }),
		),
	)
}
