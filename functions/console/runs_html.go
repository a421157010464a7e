package console

import (
	"time"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

func (d runsData) content(l *ui.Layout) Node {
	return Group{
		ui.Top(Text("Runs"), If(d.First, ui.NewRows())),
		l.Presets("Presets", d.Presets), d.filters(l), l.Chips(d.Chips), d.list(l),
	}
}

func (d runsData) filters(l *ui.Layout) Node {
	chosen := func(name, all, label string, options ...Node) Node {
		return Label(Text(label+" "), Select(Name(name), Option(Value(""), Text(all)), Group(options)))
	}
	options := func(name string, values ...string) Node {
		return Map(values, func(value string) Node { return Option(If(d.Filter.Get(name) == value, Selected()), Text(value)) })
	}
	value := func(name string) Node { return Group{Name(name), Value(d.Filter.Get(name))} }
	at := func(name string) Node {
		shown := d.Filter.Get(name)
		if exact, err := time.Parse(time.RFC3339, shown); err == nil {
			shown = exact.UTC().Format(ui.FormTime)
		}
		return Group{Type("datetime-local"), Name(name), Value(shown)}
	}
	var triggers []string
	for _, t := range run.Triggers() {
		triggers = append(triggers, string(t))
	}
	var states []string
	for _, s := range run.States() {
		states = append(states, string(s))
	}
	return l.Get(
		"runs", Class("filters"), Role("search"), Aria("label", "Filter the runs"),
		chosen("state", "any", "State", options("state", states...)),
		chosen("kind", "any", "Kind", options("kind", spec.FilterKinds()...)),
		chosen("trigger", "any", "Trigger", options("trigger", triggers...)),
		chosen("since", "any time", "Created", Map(page.Spans, func(s page.Span) Node {
			return Option(Value(s.Value), If(d.Filter.Get("since") == s.Value, Selected()), Text(s.Text))
		})),
		ui.Field("After (UTC)", at("createdAfter")), ui.Field("Before (UTC)", at("createdBefore")),
		ui.Field("Job", value("jobId")), ui.Field("Pool", value("pool")), ui.Field("Failure code", value("faultCode"), Placeholder("PROGRAM_EXIT")),
		ui.Field("Text of the error", value("error"), MaxLength("200")), ui.Field("Labels", value("label"), Placeholder("team=data,env!=dev")),
		Button(Text("Filter")),
	)
}

// list returns the runs of the page.
func (d runsData) list(l *ui.Layout) Node {
	write := l.May("runs:write")
	switch {
	case len(d.Runs) > 0:
		rows := Div(Class("table rows"), Table(
			ui.Headings(ui.Columns("State", "What", "Trigger"), ui.NumberColumns("Attempt"), ui.Columns("Created"), ui.NumberColumns("Duration"), ui.Columns("Reason")),
			TBody(If(d.First, ui.Flag("data-rows")), Map(d.Runs, func(r page.RunRow) Node { return rowOfList(r, l, write) })),
		))
		if write {
			rows = d.selects(l, rows)
		}
		return Group{rows, d.searched(l), l.Pager(d.Pager)}
	case !d.Searched.IsZero() || d.Pager.Older != "":
		return Group{d.searched(l), l.Pager(d.Pager)}
	case len(d.Chips) > 0:
		return ui.Empty("No run matches these filters.", "")
	}
	return ui.Empty("There are no runs yet. Start one from a terminal:", "sortie export mods --pi 01K9XVBAQZF9EHDRXGBEADTZYY --recursive")
}

// selects returns the form that selects runs for an action. A new filter loads the page again,
// without a selection.
func (d runsData) selects(l *ui.Layout, rows Node) Node {
	return l.Post(
		"runs/select", AutoComplete("off"), ui.HiddenField("filter", d.Filter.Encode()),
		Div(
			Class("row select"), Button(Type("button"), ui.Flag("data-all"), ui.Flag("hidden"), Text("Select this page")), ui.Space(),
			If(len(d.Filter) > 0, Group{Label(Input(Type("checkbox"), Name("all"), Value("true")), Text(" All that match the filters")), ui.Space()}),
			Button(Name("action"), Value(actionCancel), Text("Cancel…")), ui.Space(), Button(Name("action"), Value(actionRerun), Text("Rerun…")), ui.Space(),
			Button(Name("action"), Value(actionLabel), Text("Label…")), ui.Space(),
			Span(Class("quiet"), Text("A preview comes first.")),
		),
		rows,
	)
}

// searched returns until when the list was searched, if that is not its end.
func (d runsData) searched(l *ui.Layout) Node {
	if d.Searched.IsZero() && (len(d.Runs) > 0 || d.Pager.Older == "") {
		return nil
	}
	return P(
		Class("caution"), ui.Icon("question"),
		ui.Choose[Node](d.Searched.IsZero(), Text("A part of the runs was searched."), Group{Text("Searched until "), l.Time(d.Searched), Text(": older runs may match, too.")}),
		ui.Space(), l.A(d.Pager.Older, Text("Continue the search")),
	)
}

// rowOfList returns a row of the list of runs, with a field that selects it.
func rowOfList(r page.RunRow, l *ui.Layout, selects bool) Node {
	trigger := ui.None("–")
	if r.Trigger != "" {
		trigger = Text(ui.Visible(r.Trigger))
	}
	return Tr(
		ID("run-"+r.RunID), Data("run", r.RunID), ui.Flag("data-part"),
		Td(
			If(selects, Group{Input(Type("checkbox"), Name("run"), Value(r.RunID), Aria("label", "Select "+ui.Short(60, r.What)+" "+r.RunID)), ui.Space()}),
			ui.StateOf(r.State, r.Skipped).Badge(),
		),
		ui.Wide(l.A(ui.RunPath(r.RunID), ui.Bdi(ui.Short(80, r.What))), If(r.Detail != "", ui.SubLine(ui.Bdi(ui.Short(90, r.Detail)))), ui.LabelsLine(r.Labels)),
		ui.Extra(trigger), ui.Labelled("attempt", ui.Texts(r.Attempt)), Td(Data("label", "created"), l.Time(r.CreatedAt)),
		ui.Labelled("took", r.Took()), ui.Wide(r.ShownReason()),
	)
}
