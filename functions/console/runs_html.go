package console

import (
	"time"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

func (d runsData) content(l *layout) Node {
	return Group{
		head(Text("Runs"), If(d.First, newRows())),
		l.presets("Presets", d.Presets), d.filters(l), l.chips(d.Chips), d.list(l),
	}
}

func (d runsData) filters(l *layout) Node {
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
			shown = exact.UTC().Format(formTime)
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
	return l.get(
		"runs", Class("filters"), Role("search"), Aria("label", "Filter the runs"),
		chosen("state", "any", "State", options("state", states...)),
		chosen("kind", "any", "Kind", options("kind", run.FilterKinds()...)),
		chosen("trigger", "any", "Trigger", options("trigger", triggers...)),
		chosen("since", "any time", "Created", Map(spans, func(s span) Node {
			return Option(Value(s.Value), If(d.Filter.Get("since") == s.Value, Selected()), Text(s.Text))
		})),
		field("After (UTC)", at("createdAfter")), field("Before (UTC)", at("createdBefore")),
		field("Job", value("jobId")), field("Pool", value("pool")), field("Failure code", value("faultCode"), Placeholder("PROGRAM_EXIT")),
		field("Text of the error", value("error"), MaxLength("200")), field("Labels", value("label"), Placeholder("team=data,env!=dev")),
		Button(Text("Filter")),
	)
}

// list returns the runs of the page.
func (d runsData) list(l *layout) Node {
	write := l.May("runs:write")
	switch {
	case len(d.Runs) > 0:
		rows := Div(Class("table rows"), Table(
			headings(th("State", "What", "Trigger"), thNum("Attempt"), th("Created"), thNum("Duration"), th("Reason")),
			TBody(If(d.First, flag("data-rows")), Map(d.Runs, func(r runRow) Node { return r.row(l, write) })),
		))
		if write {
			rows = d.selects(l, rows)
		}
		return Group{rows, d.searched(l), l.pager(d.Pager)}
	case !d.Searched.IsZero() || d.Pager.Older != "":
		return Group{d.searched(l), l.pager(d.Pager)}
	case len(d.Chips) > 0:
		return empty("No run matches these filters.", "")
	}
	return empty("There are no runs yet. Start one from a terminal:", "sortie export mods --pi 01K9XVBAQZF9EHDRXGBEADTZYY --recursive")
}

// selects returns the form that selects runs for an action. A new filter loads the page again,
// without a selection.
func (d runsData) selects(l *layout, rows Node) Node {
	return l.post(
		"runs/select", AutoComplete("off"), hiddenField("filter", d.Filter.Encode()),
		Div(
			Class("row select"), Button(Type("button"), flag("data-all"), flag("hidden"), Text("Select this page")), space(),
			If(len(d.Filter) > 0, Group{Label(Input(Type("checkbox"), Name("all"), Value("true")), Text(" All that match the filters")), space()}),
			Button(Name("action"), Value(actionCancel), Text("Cancel…")), space(), Button(Name("action"), Value(actionRerun), Text("Rerun…")), space(),
			Button(Name("action"), Value(actionLabel), Text("Label…")), space(),
			Span(Class("quiet"), Text("A preview comes first.")),
		),
		rows,
	)
}

// searched returns until when the list was searched, if that is not its end.
func (d runsData) searched(l *layout) Node {
	if d.Searched.IsZero() && (len(d.Runs) > 0 || d.Pager.Older == "") {
		return nil
	}
	return P(
		Class("caution"), icon("question"),
		choose[Node](d.Searched.IsZero(), Text("A part of the runs was searched."), Group{Text("Searched until "), l.time(d.Searched), Text(": older runs may match, too.")}),
		space(), l.a(d.Pager.Older, Text("Continue the search")),
	)
}

// row returns a row of the list of runs, with a field that selects it.
func (r runRow) row(l *layout, selects bool) Node {
	trigger := none("–")
	if r.Trigger != "" {
		trigger = Text(visible(r.Trigger))
	}
	return Tr(
		ID("run-"+r.RunID), Data("run", r.RunID), flag("data-part"),
		Td(
			If(selects, Group{Input(Type("checkbox"), Name("run"), Value(r.RunID), Aria("label", "Select "+short(60, r.What)+" "+r.RunID)), space()}),
			stateOf(r.State, r.Skipped).badge(),
		),
		wide(l.a(runPath(r.RunID), bdi(short(80, r.What))), If(r.Detail != "", sub(bdi(short(90, r.Detail)))), labelsLine(r.Labels)),
		extra(trigger), labelled("attempt", text(r.Attempt)), Td(Data("label", "created"), l.time(r.CreatedAt)),
		labelled("took", r.took()), wide(r.reason()),
	)
}

// took returns the duration of a run that has started.
func (r runRow) took() Node {
	if r.StartedAt.IsZero() {
		return none("–")
	}
	return Text(seconds(r.Seconds))
}

func (r runRow) reason() Node {
	if r.Reason == "" {
		return nil
	}
	return El("bdi", TitleAttr(short(400, r.Reason)), Text(short(110, r.Reason)))
}
