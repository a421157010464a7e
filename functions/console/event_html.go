package console

import (
	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/events/eventtype"
)

func (d eventsData) content(l *layout) Node {
	value := func(name string) Node { return Value(d.Filter.Get(name)) }
	return Group{
		head(Text("Events"), If(d.First, newRows()), space(), actions(l.button("events/proof", Text("Prove a range")))),
		l.presets("Presets", d.Presets),
		l.get(
			"events", Class("filters"), Role("search"), Aria("label", "Filter the events"),
			field("Types", Name("types"), attr("list", "types"), value("types"), Placeholder("job.failed, schedule.*")),
			DataList(ID("types"), Map(d.Types, func(known eventtype.Info) Node {
				return Option(Value(string(known.Type)), Text(known.When))
			})),
			field("Job", Name("jobId"), value("jobId")), field("Run", Name("taskId"), value("taskId")),
			Button(Text("Filter")),
		),
		l.chips(d.Chips), d.list(l),
		If(len(d.Chips) > 0 && d.Pager.Older != "", quiet(text(d.Searched, " events of the stream were searched for this page."))),
		l.pager(d.Pager),
	}
}

// list returns the events of the page.
func (d eventsData) list(l *layout) Node {
	switch {
	case len(d.Events) > 0:
		return Div(Class("table rows"), Table(
			headings(thNum("Position"), th("Time", "Event", "About", "Details")),
			TBody(If(d.First, flag("data-rows")), Map(d.Events, func(e eventRow) Node { return e.row(l) })),
		))
	case len(d.Chips) > 0:
		return empty(joined("No event matches these filters among the last ", d.Searched, "."), "")
	}
	return empty("There are no events yet. They begin with the first run:", "sortie export mods --pi 01K9XVBAQZF9EHDRXGBEADTZYY --recursive")
}

// row returns a row of the list of events.
func (e eventRow) row(l *layout) Node {
	path := eventPath(e.Cursor.String())
	cells := Group{
		Td(l.time(e.Event.OccurredAt)),
		wide(l.a(path, code(short(60, string(e.Event.EventType))))),
		wide(e.about(l, 60), If(e.Event.Job != nil && e.Event.Job.Attempt != 0, Group{space(), Span(Class("quiet"), Text("#"), e.attempt())})),
		wide(El("bdi", TitleAttr(short(400, e.Details)), Text(short(120, e.Details)))),
	}
	if e.Unreadable {
		cells = Group{Td(), Td(code("unreadable")), Td(), wide(Text("The record cannot be read."))}
	}
	return Tr(ID(joined("event-", e.Cursor.Position)), flag("data-part"), num(l.a(path, text(e.Cursor.Position))), cells)
}

func (e eventRow) attempt() Node {
	if e.Event.Job == nil {
		return nil
	}
	return text(e.Event.Job.Attempt)
}

// about returns what the event is about, with a link to its page.
func (e eventRow) about(l *layout, n int) Node {
	if e.Path == "" {
		return bdi(short(n, e.About))
	}
	return l.a(e.Path, bdi(short(n, e.About)))
}

func (d eventData) content(l *layout) Node {
	e := d.Event
	title := code(short(80, string(e.EventType)))
	if d.Unreadable {
		title = Text("Unreadable record")
	}
	link := func(path, rel, label string) Node {
		return If(path != "", l.button(path, Rel(rel), Text(label)))
	}
	return Group{
		head(title, actions(link(d.Previous, "prev", "‹ Earlier"), link(d.Next, "next", "Later ›"))),
		facts(fact("Position", text(d.Cursor.Position)), If(!d.Unreadable, d.known(l))),
		If(d.Details != "", P(bdi(visible(d.Details)))),
		card("signature", "Signature", d.signature(l), Details(
			Class("commands"), Summary(Text("Verify it outside of the browser")),
			Map(d.Commands, func(command string) Node { return P(copied(command)) }),
			quiet(Text("The proof needs a checkpoint behind the event. One is written within a minute.")),
		)),
		section("envelope", "Envelope", Pre(TabIndex("0"), Aria("label", "The signed text"), Text(d.Envelope))),
		l.module("verify.js"),
	}
}

// known returns the facts of an event that can be read.
func (d eventData) known(l *layout) Node {
	e := d.Event
	run := ""
	if e.Job != nil && e.Job.ID != d.About {
		run = e.Job.ID
	}
	return Group{
		fact("Time", l.time(e.OccurredAt)),
		If(d.About != "", fact("About", d.about(l, 120))),
		If(run != "", fact("Run", l.a(runPath(run), code(short(90, run))))),
		fact("Caused by", bdi(short(120, e.Actor.Subject))),
		fact("Id", code(short(90, e.EventID))),
	}
}

// signature returns the place in which verify.js shows its result.
func (d eventData) signature(l *layout) Node {
	if len(d.Keys) == 0 {
		return P(Text("The record has no signature."))
	}
	return Group{
		quiet(
			Text("Signed by "), commas(d.Keys, func(key string) Node { return code(short(60, key)) }), Text(" · "),
			l.a("json"+d.KeySet, Text("the published keys")),
		),
		Div(
			Class("verdict"), Data("verify", l.Root+"json/v1/events"), Data("after", d.After), Data("event", d.Event.EventID), Data("keys", l.Root+"json"+d.KeySet),
			P(Role("status"), Text("The signature is not verified on this page: that needs JavaScript. These commands verify it:")),
		),
	}
}

func (d proofData) content(l *layout) Node {
	title, verdict := "No events", P(Text("The range has no events."))
	if d.Checked {
		title = joined("Events ", d.First, " to ", d.Last)
		verdict = Div(
			Class("verdict"), Data("prove", l.Root+"json"+d.Signed), Data("after", d.After), attr("data-until", d.Last), Data("keys", l.Root+"json"+d.KeySet),
			P(Role("status"), Text("The proof in the browser needs JavaScript. These commands prove the same:")),
		)
	}
	return Group{
		head(Text("Proof of completeness")),
		P(Text("Each event is signed, and checkpoints of the stream sign how many events there are, and which. Between two checkpoints no event can be missing, changed, added or moved. This page verifies that in your browser.")),
		l.get(
			"events/proof", Class("filters"), Aria("label", "Choose the range"),
			field("After the cursor", Name("after"), Value(d.After)), field("Up to the cursor", Name("until"), Value(d.Until)),
			Button(Text("Prove")),
		),
		card("proof", title, verdict, Details(
			Class("commands"), flag("open"), Summary(Text("Prove it outside of the browser")),
			Map(d.Commands, func(command string) Node { return P(copied(command)) }),
		)),
		l.module("verify.js"),
	}
}
