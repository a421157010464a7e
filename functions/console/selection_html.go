package console

import (
	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"
)

func (d selectionData) content(l *layout) Node {
	return Group{
		P(Class("crumbs"), l.a("runs", Text("Runs")), Text(" /")),
		head(Text(d.title()), Span(Class("quiet"), bdi(short(200, d.Filter)))),
		d.status(l), d.more(l),
		If(len(d.Runs) > 0, section("runs", "Runs", listing(
			headings(th("State then", "What", "Created", "Result")), Map(d.Shown, func(r selected) Node { return r.row(l, !d.Applied.IsZero()) }),
		), l.pages(d.Pager.Newest, "« First", d.Pager.Older, "Next ›"))),
		d.refused(l),
	}
}

// status returns the form of the action, or how far it is.
func (d selectionData) status(l *layout) Node {
	path := selectionPath(d.ID) + "/apply"
	switch {
	case len(d.Runs) == 0:
		return warning(Text("None of the selected runs can be changed in this way."))
	case d.Applied.IsZero():
		return Div(
			Class("card wait"), P(Text("Nothing has changed yet. These runs are changed, and no others, even if others match by then.")),
			If(l.May("runs:write"), l.post(
				path, Class("filters"), If(d.Action == actionCancel, field("Reason", Name("reason"), MaxLength("200"))),
				If(d.Action == actionLabel, field("Labels", Name("labels"), Required(), Placeholder("KEY=VALUE, or KEY- to remove it"))),
				Button(Class(choose(d.Action == actionCancel, "danger", "primary")), Text(d.title())), l.button("runs?"+d.Filter, Text("Back")),
			)),
		)
	}
	return Div(
		Class("card run"),
		facts(
			Map(d.Counts, func(c count) Node { return fact(resultText(c.Result), text(c.Runs)) }),
			If(d.Open > 0, fact(resultText(""), text(d.Open))),
			fact("Started", l.time(d.Applied), by(d.AppliedBy)), If(d.Reason != "", fact("Reason", bdi(short(200, d.Reason)))),
			If(len(d.Labels) > 0, fact("Labels", Text(short(200, d.Labels.String())))),
		),
		If(d.Open > 0 && l.May("runs:write"), l.post(path, Button(Class("primary"), Text("Continue")))),
	)
}

// more says that further runs match the filter, with the form that selects them.
func (d selectionData) more(l *layout) Node {
	if d.Next == "" {
		return nil
	}
	return l.post(
		"runs/select", Class("caution"), hiddenField("all", "true"), hiddenField("action", d.Action), hiddenField("filter", d.Filter), hiddenField("cursor", d.Next),
		Span(Text("Searched until "), l.time(d.Until), Text(": older runs may match, too. They are not part of this selection.")),
		If(l.May("runs:write"), Button(Text("Select the next runs"))),
	)
}

// row returns a row of the list. done: the action has begun.
func (r selected) row(l *layout, done bool) Node {
	return Tr(
		Td(stateOf(r.State, false).badge()), wide(l.a(runPath(r.ID), bdi(short(40, r.What))), sub(Text(r.ID))), Td(Data("label", "created"), l.time(r.Created)),
		wide(
			If(done, Text(resultText(r.Result))), If(r.Message != "", Group{Text(": "), bdi(short(80, r.Message))}),
			If(r.New != "", Group{space(), l.a(runPath(r.New), Text(r.New))}),
		),
	)
}

// refused returns the runs that the action cannot change, with the reasons.
func (d selectionData) refused(l *layout) Node {
	if d.RefusedAll == 0 {
		return nil
	}
	return section(
		"refused", runsOf(d.RefusedAll)+" that cannot be changed",
		If(len(d.Refused) < d.RefusedAll, quiet(text("The first ", len(d.Refused), " are below."))),
		listing(headings(th("Run", "Reason")), Map(d.Refused, func(r selected) Node {
			return Tr(wide(l.a(runPath(r.ID), bdi(short(100, r.ID))), sub(bdi(short(40, r.What)))), wide(Text(r.Message+" "), If(r.State != "", stateOf(r.State, false).badge())))
		})),
	)
}
