package console

import (
	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/ui"
)

func (d selectionData) content(l *ui.Layout) Node {
	return Group{
		P(Class("crumbs"), l.A("runs", Text("Runs")), Text(" /")),
		ui.Top(Text(d.title()), Span(Class("quiet"), ui.Bdi(ui.Short(200, d.Filter)))),
		d.status(l), d.more(l),
		If(len(d.Runs) > 0, ui.Block("runs", "Runs", ui.Listing(
			ui.Headings(ui.Columns("State then", "What", "Created", "Result")), Map(d.Shown, func(r selected) Node { return r.row(l, !d.Applied.IsZero()) }),
		), l.Pages(d.Pager.Newest, "« First", d.Pager.Older, "Next ›"))),
		d.refused(l),
	}
}

// status returns the form of the action, or how far it is.
func (d selectionData) status(l *ui.Layout) Node {
	path := selectionPath(d.ID) + "/apply"
	switch {
	case len(d.Runs) == 0:
		return ui.Warning(Text("None of the selected runs can be changed in this way."))
	case d.Applied.IsZero():
		return Div(
			Class("card wait"), P(Text("Nothing has changed yet. These runs are changed, and no others, even if others match by then.")),
			If(l.May("runs:write"), l.Post(
				path, Class("filters"), If(d.Action == actionCancel, ui.Field("Reason", Name("reason"), MaxLength("200"))),
				If(d.Action == actionLabel, ui.Field("Labels", Name("labels"), Required(), Placeholder("KEY=VALUE, or KEY- to remove it"))),
				Button(Class(ui.Choose(d.Action == actionCancel, "danger", "primary")), Text(d.title())), l.Button("runs?"+d.Filter, Text("Back")),
			)),
		)
	}
	return Div(
		Class("card run"),
		ui.Facts(
			Map(d.Counts, func(c count) Node { return ui.Fact(resultText(c.Result), ui.Texts(c.Runs)) }),
			If(d.Open > 0, ui.Fact(resultText(""), ui.Texts(d.Open))),
			ui.Fact("Started", l.Time(d.Applied), ui.By(d.AppliedBy)), If(d.Reason != "", ui.Fact("Reason", ui.Bdi(ui.Short(200, d.Reason)))),
			If(len(d.Labels) > 0, ui.Fact("Labels", Text(ui.Short(200, d.Labels.String())))),
		),
		If(d.Open > 0 && l.May("runs:write"), l.Post(path, Button(Class("primary"), Text("Continue")))),
	)
}

// more says that further runs match the filter, with the form that selects them.
func (d selectionData) more(l *ui.Layout) Node {
	if d.Next == "" {
		return nil
	}
	return l.Post(
		"runs/select", Class("caution"), ui.HiddenField("all", "true"), ui.HiddenField("action", d.Action), ui.HiddenField("filter", d.Filter), ui.HiddenField("cursor", d.Next),
		Span(Text("Searched until "), l.Time(d.Until), Text(": older runs may match, too. They are not part of this selection.")),
		If(l.May("runs:write"), Button(Text("Select the next runs"))),
	)
}

// row returns a row of the list. done: the action has begun.
func (r selected) row(l *ui.Layout, done bool) Node {
	return Tr(
		Td(ui.StateOf(r.State, false).Badge()), ui.Wide(l.A(ui.RunPath(r.ID), ui.Bdi(ui.Short(40, r.What))), ui.SubLine(Text(r.ID))), Td(Data("label", "created"), l.Time(r.Created)),
		ui.Wide(
			If(done, Text(resultText(r.Result))), If(r.Message != "", Group{Text(": "), ui.Bdi(ui.Short(80, r.Message))}),
			If(r.New != "", Group{ui.Space(), l.A(ui.RunPath(r.New), Text(r.New))}),
		),
	)
}

// refused returns the runs that the action cannot change, with the reasons.
func (d selectionData) refused(l *ui.Layout) Node {
	if d.RefusedAll == 0 {
		return nil
	}
	return ui.Block(
		"refused", runsOf(d.RefusedAll)+" that cannot be changed",
		If(len(d.Refused) < d.RefusedAll, ui.Quiet(ui.Texts("The first ", len(d.Refused), " are below."))),
		ui.Listing(ui.Headings(ui.Columns("Run", "Reason")), Map(d.Refused, func(r selected) Node {
			return Tr(ui.Wide(l.A(ui.RunPath(r.ID), ui.Bdi(ui.Short(100, r.ID))), ui.SubLine(ui.Bdi(ui.Short(40, r.What)))), ui.Wide(Text(r.Message+" "), If(r.State != "", ui.StateOf(r.State, false).Badge())))
		})),
	)
}
