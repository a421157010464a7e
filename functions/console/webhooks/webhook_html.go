package webhooks

import (
	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (d webhookData) content(l *ui.Layout) Node {
	may := l.May("webhooks:write")
	act := func(verb, label string) Node { return l.Post(ui.WebhookPath(d.ID)+"/"+verb, Button(Text(label))) }
	return Group{
		ui.Top(ui.Bdi(ui.Short(120, d.URL)), d.Look.Badge(), ui.Space(), If(may, ui.Actions(
			act("test", "Send a test"), If(d.Paused || d.DisabledReason != "", act("resume", "Resume")), If(!d.Paused, act("pause", "Pause")),
		))),
		If(d.Description != "", P(ui.Bdi(ui.Short(400, d.Description)))),
		If(d.DisabledReason != "", P(
			Class("warn"), Text("Sortie disabled the webhook "), l.Time(d.DisabledAt), Text(": "), ui.Bdi(ui.Visible(d.DisabledReason)),
		)),
		Div(Class("cards"), d.health(l), d.settings(l), d.secrets(l)),
		If(may, d.again(l)), d.deliveries(l), If(may, d.deletion(l)),
	}
}

func (d webhookData) health(l *ui.Layout) Node {
	p := d.Progress
	return ui.Card("health", "Health", Dl(
		ui.Term("Last success", l.Time(p.LastSuccessAt)), ui.Term("Last failure", l.Time(p.LastFailureAt)),
		ui.Term("Failures in a row", ui.Texts(p.Failures)), ui.Term("Pending", ui.Texts(p.Pending)),
		If(!p.HeldUntil.IsZero(), ui.Term("Next attempt", l.Time(p.HeldUntil))),
		ui.Term("Read up to", ui.Texts("position ", p.Position)),
		Map(p.Missed, func(r contract.PositionRange) Node {
			return ui.Term("Missed", ui.Texts("positions ", r.From, " to ", r.To))
		}),
		Map(p.Redeliveries, func(r contract.Redelivery) Node {
			return ui.Term("Sent again", ui.Texts(r.Sent, " of ", r.Events, " events, positions ", r.From, " to ", r.To))
		}),
	))
}

func (d webhookData) settings(l *ui.Layout) Node {
	rate := "no limit"
	if d.RateLimit != 0 {
		rate = ui.Joined(d.RateLimit, " attempts a second")
	}
	return ui.Card("settings", "Settings", Dl(
		ui.Term("Id", ui.Mono(d.ID)), ui.Term("Events", d.types(60)),
		If(d.JobID != "", ui.Term("Job", ui.Bdi(ui.Short(90, d.JobID)))),
		If(d.TaskID != "", ui.Term("Run", l.A(ui.RunPath(d.TaskID), ui.Bdi(ui.Short(90, d.TaskID))))),
		ui.Term("Order", Text(ui.Choose(d.Ordered, "in the order of each run", "as they come"))),
		ui.Term("Rate limit", Text(rate)),
		ui.Term("Created", l.Time(d.CreatedAt), If(d.CreatedBy != "", Group{Text(" by "), ui.Bdi(ui.Short(60, d.CreatedBy))})),
	))
}

func (d webhookData) secrets(l *ui.Layout) Node {
	return ui.Card(
		"secrets", "Secrets",
		Dl(Map(d.Secrets, func(s contract.WebhookSecretExpiry) Node {
			until := Text("signs")
			if !s.ExpiresAt.IsZero() {
				until = Group{Text("signs until "), l.Time(s.ExpiresAt)}
			}
			return Group{Dt(Text("Created "), l.Time(s.CreatedAt)), Dd(until)}
		})),
		If(l.May("webhooks:write"), l.Post(
			ui.WebhookPath(d.ID)+"/rotate", Class("stack"), ui.HiddenField("tag", d.Tag),
			checkbox("revoke", "Revoke the older secrets now"), P(Button(Text("New secret"))),
		)),
	)
}

// again returns the forms that send events again.
func (d webhookData) again(l *ui.Layout) Node {
	spans := Map(d.Spans, func(s page.Span) Node { return Option(Value(s.Value), If(s.Value == "24h", Selected()), Text(s.Text)) })
	return ui.Card(
		"again", "Send again",
		l.Get(
			ui.WebhookPath(d.ID)+"/recover", Class("filters"),
			Label(Text("What failed, and was missed, in the "), Select(Name("since"), spans)), Button(Text("Preview")),
		),
		If(l.May("orch:backfill"), Details(
			Summary(Text("Replay a part of the stream, delivered events too")),
			l.Post(
				ui.WebhookPath(d.ID)+"/replay", Class("filters"), ui.HiddenField("key", d.Key),
				ui.Field("From a time or a cursor", Name("from"), Required(), Placeholder("2026-11-21T09:00:00Z")),
				ui.Field("To", Name("to"), Placeholder("latest")), ui.Field("Types", Name("types"), Placeholder("job.failed")),
				Button(Text("Replay")),
			),
		)),
	)
}

// deliveries returns the deliveries of the page, with links to those in other states.
func (d webhookData) deliveries(l *ui.Layout) Node {
	preset := func(query, label string, current bool) Node {
		return Li(l.A(ui.WebhookPath(d.ID)+query, If(current, Aria("current", "true")), Text(label)))
	}
	states := Ul(
		Class("presets"), Aria("label", "States"), preset("", "All", d.State == ""),
		Map(d.States, func(s webhook.State) Node {
			return preset("?state="+ui.QueryValue(string(s)), string(s), string(s) == d.State)
		}),
	)
	if len(d.Deliveries) == 0 {
		message := ui.Choose(d.State != "", "No delivery is in this state.", "Nothing was sent yet. A test shows whether the address answers:")
		return ui.Block("deliveries", "Deliveries", states, ui.Empty(message, "sortie webhooks test "+d.ID))
	}
	action := Th(Scope("col"), Span(Class("off"), Text("Action")))
	return ui.Block(
		"deliveries", "Deliveries", states,
		ui.Listing(
			ui.Headings(ui.NumberColumns("Position"), ui.Columns("State", "Event", "Last answer"), ui.NumberColumns("Took"), ui.Columns("Attempts"), If(l.May("webhooks:write"), action)),
			Map(d.Deliveries, func(each deliveryRow) Node { return each.row(l, d.ID) }),
		),
		ui.Quiet(Text("The body of a request is the event at its position. Its headers have the signature of the webhook's secret.")),
		l.Pager(d.Pager),
	)
}

// row returns a row of the deliveries of a webhook.
func (d deliveryRow) row(l *ui.Layout, webhook string) Node {
	last, took := ui.None("–"), Node(nil)
	if a := d.Last; a != nil {
		last = Group{If(a.Status != 0, Group{B(ui.Texts(a.Status)), ui.Space()}), ui.Bdi(ui.Short(100, a.Error)), ui.SubLine(l.Time(a.At))}
		took = ui.Texts(a.LatencyMS, " ms")
	}
	tries := ui.Texts(d.Tries)
	if len(d.Attempts) > 0 {
		tries = Details(Summary(ui.Texts(d.Tries)), Ol(Class("attempts"), Map(d.Attempts, func(a contract.WebhookAttempt) Node { return attemptItem(l, a) })))
	}
	return Tr(
		ID(ui.Joined("delivery-", d.Position)),
		ui.Num(l.A(ui.Joined("events/", d.Position), TitleAttr("The event, which is the body of the request"), ui.Texts(d.Position))),
		Td(d.Look.Badge(), If(!d.NextAttemptAt.IsZero(), ui.SubLine(Text("next "), l.Time(d.NextAttemptAt)))),
		ui.Wide(ui.Mono(ui.Short(60, d.EventType)), If(d.TaskID != "", ui.SubLine(l.A(ui.RunPath(d.TaskID), ui.Bdi(ui.Short(60, d.TaskID)))))),
		ui.Wide(last), ui.Num(took), ui.Wide(tries),
		If(l.May("webhooks:write"), Td(l.Post(ui.WebhookPath(webhook)+"/redeliver", ui.HiddenField("position", ui.Joined(d.Position)), Button(Text("Redeliver"))))),
	)
}

func attemptItem(l *ui.Layout, a contract.WebhookAttempt) Node {
	return Li(
		l.Time(a.At), Text(": "), statusOf(a), ui.Texts(" after ", a.LatencyMS, " ms"),
		If(a.Error != "", Group{ui.Space(), ui.Bdi(ui.Short(300, a.Error))}), If(a.Response != "", Pre(Text(ui.Visible(a.Response)))),
	)
}

// statusOf returns the status of the response to an attempt.
func statusOf(a contract.WebhookAttempt) Node {
	if a.Status == 0 {
		return Text("no response")
	}
	return ui.Texts(a.Status)
}

func (d webhookData) deletion(l *ui.Layout) Node {
	return Details(Class("card"), Summary(Text("Delete the webhook")), l.Post(
		ui.WebhookPath(d.ID)+"/delete", Class("filters"), ui.Field("Type its id", Name("confirm"), Required(), AutoComplete("off"), Placeholder(d.ID)),
		Button(Class("danger"), Text("Delete with its log")),
	))
}

// toWebhook returns the link back to a webhook.
func toWebhook(l *ui.Layout, id string) Node {
	return P(l.A(ui.WebhookPath(id), Text("To the webhook")))
}

func (d attemptData) content(l *ui.Layout) Node {
	a := d.Attempt
	result := ui.Badge("bad", "cross", "Not accepted")
	if d.Good {
		result = ui.Badge("good", "check", "Accepted")
	}
	return Group{
		ui.Top(Text("Test of a webhook"), result),
		ui.Facts(ui.Fact("Status", statusOf(a)), ui.Fact("Took", ui.Texts(a.LatencyMS, " ms")), ui.Fact("Sent", l.Time(a.At))),
		If(a.Error != "", P(Class("warn"), ui.Bdi(ui.Visible(a.Error)))),
		If(a.Response != "", Group{H2(Text("Response")), Pre(Text(ui.Visible(a.Response)))}),
		toWebhook(l, d.ID),
	}
}

func (d replayData) content(l *ui.Layout) Node {
	r := d.Replay
	return Group{
		ui.Done(ui.Joined(r.Events, " events are sent again.")),
		H1(Text("Replay")),
		ui.Facts(
			ui.Fact("Id", ui.Mono(ui.Short(90, r.ID))), ui.Fact("After", ui.Mono(ui.Short(60, r.From))), ui.Fact("Up to", ui.Mono(ui.Short(60, r.To))),
			ui.Fact("Sent so far", ui.Texts(r.Sent, " of ", r.Events)),
		),
		If(r.Next != "", P(Text("The range has further events. Replay them from the cursor "), ui.Mono(ui.Short(60, r.Next)), Text("."))),
		toWebhook(l, d.ID),
	}
}

func (d recoverData) content(l *ui.Layout) Node {
	var missed Node
	if len(d.Missed) > 0 {
		missed = Group{
			Text(" It also missed events while it was paused or disabled, at "),
			ui.Commas(d.Missed, func(r contract.PositionRange) Node { return ui.Texts("positions ", r.From, " to ", r.To) }),
			Text("; those since that time are sent, too."),
		}
	}
	example := func(each deliveryRow) Node {
		return Tr(
			ui.Num(l.A(ui.Joined("events/", each.Position), ui.Texts(each.Position))), Td(ui.Mono(ui.Short(60, each.EventType))),
			ui.Wide(ui.With(each.Last, func(a *contract.WebhookAttempt) Node {
				return Group{If(a.Status != 0, ui.Texts(a.Status, " ")), ui.Bdi(ui.Short(120, a.Error))}
			})),
		)
	}
	return Group{
		H1(Text("Send again what failed")),
		P(
			Text("Since "), B(l.Time(d.At)), Text(", "), B(ui.Texts(d.Count, ui.Choose(d.More, " or more", ""))),
			Text(" deliveries of this webhook have failed."), missed, Text(" Events that were delivered are not sent again."),
		),
		If(len(d.Examples) > 0, Div(Class("table"), Table(
			Caption(Text("The newest of them")), ui.Headings(ui.NumberColumns("Position"), ui.Columns("Event", "Last answer")), TBody(Map(d.Examples, example)),
		))),
		Div(
			Class("stack"),
			If(d.Count > 0 || len(d.Missed) > 0, l.Post(
				ui.WebhookPath(d.ID)+"/redeliver", ui.HiddenField("since", d.Since), Button(Class("primary"), Text("Send them again")),
			)),
			toWebhook(l, d.ID),
		),
	}
}
