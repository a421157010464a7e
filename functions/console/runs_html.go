package console

import (
	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/shared/run"
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
	same := func(name, value string) Node { return If(d.Filter.Get(name) == value, Selected()) }
	value := func(name string) Node { return Group{Name(name), Value(d.Filter.Get(name))} }
	return l.get(
		"runs", Class("filters"), Role("search"), Aria("label", "Filter the runs"),
		chosen("state", "any", "State", Map(run.States(), func(s run.State) Node { return Option(same("state", string(s)), Text(string(s))) })),
		chosen("kind", "any", "Kind", Map(d.Kinds, func(kind string) Node { return Option(same("kind", kind), Text(kind)) })),
		chosen("since", "any time", "Created", Map(d.Spans, func(s span) Node { return Option(Value(s.Value), same("since", s.Value), Text(s.Text)) })),
		field("Job", value("jobId")), field("Pool", value("pool")), field("Failure code", value("faultCode"), Placeholder("PROGRAM_EXIT")),
		Button(Text("Filter")),
	)
}

// list returns the runs of the page.
func (d runsData) list(l *layout) Node {
	switch {
	case len(d.Runs) > 0:
		return Group{
			Div(Class("table rows"), Table(
				headings(th("State", "What", "Trigger"), thNum("Attempt"), th("Created"), thNum("Duration"), th("Reason")),
				TBody(If(d.First, flag("data-rows")), Map(d.Runs, func(r runRow) Node { return r.row(l) })),
			)),
			l.pager(d.Pager),
		}
	case len(d.Chips) > 0:
		return empty("No run matches these filters.", "")
	}
	return empty("There are no runs yet. Start one from a terminal:", "sortie export mods --pi 01K9XVBAQZF9EHDRXGBEADTZYY --recursive")
}

// row returns a row of the list of runs.
func (r runRow) row(l *layout) Node {
	trigger := none("–")
	if r.Trigger != "" {
		trigger = Text(visible(r.Trigger))
	}
	return Tr(
		ID("run-"+r.RunID), Data("run", r.RunID), flag("data-part"),
		Td(stateOf(r.State, r.Skipped).badge()),
		wide(l.a(runPath(r.RunID), bdi(short(80, r.What))), If(r.Detail != "", sub(bdi(short(90, r.Detail))))),
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
