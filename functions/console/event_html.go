package console

import (
	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/functions/console/ui"
)

func (d eventsData) content(l *ui.Layout) Node {
	value := func(name string) Node { return Value(d.Filter.Get(name)) }
	return Group{
		ui.Top(Text("Events"), If(d.First, ui.NewRows()), ui.Space(), ui.Actions(l.Button("events/proof", Text("Prove a range")))),
		l.Presets("Presets", d.Presets),
		l.Get(
			"events", Class("filters"), Role("search"), Aria("label", "Filter the events"),
			ui.Field("Types", Name("types"), ui.Attribute("list", "types"), value("types"), Placeholder("job.failed, schedule.*")),
			DataList(ID("types"), Map(d.Types, func(known eventtype.Info) Node {
				return Option(Value(string(known.Type)), Text(known.When))
			})),
			ui.Field("Job", Name("jobId"), value("jobId")), ui.Field("Run", Name("taskId"), value("taskId")),
			Button(Text("Filter")),
		),
		l.Chips(d.Chips), d.list(l),
		If(len(d.Chips) > 0 && d.Pager.Older != "", ui.Quiet(ui.Texts(d.Searched, " events of the stream were searched for this page."))),
		l.Pager(d.Pager),
	}
}

// list returns the events of the page.
func (d eventsData) list(l *ui.Layout) Node {
	switch {
	case len(d.Events) > 0:
		return Div(Class("table rows"), Table(
			ui.Headings(ui.NumberColumns("Position"), ui.Columns("Time", "Event", "About", "Details")),
			TBody(If(d.First, ui.Flag("data-rows")), Map(d.Events, func(e eventRow) Node { return e.row(l) })),
		))
	case len(d.Chips) > 0:
		return ui.Empty(ui.Joined("No event matches these filters among the last ", d.Searched, "."), "")
	}
	return ui.Empty("There are no events yet. They begin with the first run:", "sortie export mods --pi 01K9XVBAQZF9EHDRXGBEADTZYY --recursive")
}

// row returns a row of the list of events.
func (e eventRow) row(l *ui.Layout) Node {
	path := ui.EventPath(e.Cursor.String())
	cells := Group{
		Td(l.Time(e.Event.OccurredAt)),
		ui.Wide(l.A(path, ui.Mono(ui.Short(60, string(e.Event.EventType))))),
		ui.Wide(e.about(l, 60), If(e.Event.Job != nil && e.Event.Job.Attempt != 0, Group{ui.Space(), Span(Class("quiet"), Text("#"), e.attempt())})),
		ui.Wide(El("bdi", TitleAttr(ui.Short(400, e.Details)), Text(ui.Short(120, e.Details)))),
	}
	if e.Unreadable {
		cells = Group{Td(), Td(ui.Mono("unreadable")), Td(), ui.Wide(Text("The record cannot be read."))}
	}
	return Tr(ID(ui.Joined("event-", e.Cursor.Position)), ui.Flag("data-part"), ui.Num(l.A(path, ui.Texts(e.Cursor.Position))), cells)
}

func (e eventRow) attempt() Node {
	if e.Event.Job == nil {
		return nil
	}
	return ui.Texts(e.Event.Job.Attempt)
}

// about returns what the event is about, with a link to its page.
func (e eventRow) about(l *ui.Layout, n int) Node {
	if e.Path == "" {
		return ui.Bdi(ui.Short(n, e.About))
	}
	return l.A(e.Path, ui.Bdi(ui.Short(n, e.About)))
}

func (d eventData) content(l *ui.Layout) Node {
	e := d.Event
	title := ui.Mono(ui.Short(80, string(e.EventType)))
	if d.Unreadable {
		title = Text("Unreadable record")
	}
	link := func(path, rel, label string) Node {
		return If(path != "", l.Button(path, Rel(rel), Text(label)))
	}
	return Group{
		ui.Top(title, ui.Actions(link(d.Previous, "prev", "‹ Earlier"), link(d.Next, "next", "Later ›"))),
		ui.Facts(ui.Fact("Position", ui.Texts(d.Cursor.Position)), If(!d.Unreadable, d.known(l))),
		If(d.Details != "", P(ui.Bdi(ui.Visible(d.Details)))),
		ui.Card("signature", "Signature", d.signature(l), Details(
			Class("commands"), Summary(Text("Verify it outside of the browser")),
			Map(d.Commands, func(command string) Node { return P(ui.Copied(command)) }),
			ui.Quiet(Text("The proof needs a checkpoint behind the event. One is written within a minute.")),
		)),
		ui.Block("envelope", "Envelope", Pre(TabIndex("0"), Aria("label", "The signed text"), Text(d.Envelope))),
		l.Module("verify.js"),
	}
}

// known returns the facts of an event that can be read.
func (d eventData) known(l *ui.Layout) Node {
	e := d.Event
	run := ""
	if e.Job != nil && e.Job.ID != d.About {
		run = e.Job.ID
	}
	return Group{
		ui.Fact("Time", l.Time(e.OccurredAt)),
		If(d.About != "", ui.Fact("About", d.about(l, 120))),
		If(run != "", ui.Fact("Run", l.A(ui.RunPath(run), ui.Mono(ui.Short(90, run))))),
		ui.Fact("Caused by", ui.Bdi(ui.Short(120, e.Actor.Subject))),
		ui.Fact("Id", ui.Mono(ui.Short(90, e.EventID))),
	}
}

// signature returns the place in which verify.js shows its result.
func (d eventData) signature(l *ui.Layout) Node {
	if len(d.Keys) == 0 {
		return P(Text("The record has no signature."))
	}
	return Group{
		ui.Quiet(
			Text("Signed by "), ui.Commas(d.Keys, func(key string) Node { return ui.Mono(ui.Short(60, key)) }), Text(" · "),
			l.A("json"+d.KeySet, Text("the published keys")),
		),
		Div(
			Class("verdict"), Data("verify", l.Root+"json/v1/events"), Data("after", d.After), Data("event", d.Event.EventID), Data("keys", l.Root+"json"+d.KeySet),
			P(Role("status"), Text("The signature is not verified on this page: that needs JavaScript. These commands verify it:")),
		),
	}
}

func (d proofData) content(l *ui.Layout) Node {
	title, verdict := "No events", P(Text("The range has no events."))
	if d.Checked {
		title = ui.Joined("Events ", d.First, " to ", d.Last)
		verdict = Div(
			Class("verdict"), Data("prove", l.Root+"json"+d.Signed), Data("after", d.After), ui.Attribute("data-until", d.Last), Data("keys", l.Root+"json"+d.KeySet),
			P(Role("status"), Text("The proof in the browser needs JavaScript. These commands prove the same:")),
		)
	}
	return Group{
		ui.Top(Text("Proof of completeness")),
		P(Text("Each event is signed, and checkpoints of the stream sign how many events there are, and which. Between two checkpoints no event can be missing, changed, added or moved. This page verifies that in your browser.")),
		l.Get(
			"events/proof", Class("filters"), Aria("label", "Choose the range"),
			ui.Field("After the cursor", Name("after"), Value(d.After)), ui.Field("Up to the cursor", Name("until"), Value(d.Until)),
			Button(Text("Prove")),
		),
		ui.Card("proof", title, verdict, Details(
			Class("commands"), ui.Flag("open"), Summary(Text("Prove it outside of the browser")),
			Map(d.Commands, func(command string) Node { return P(ui.Copied(command)) }),
		)),
		l.Module("verify.js"),
	}
}
