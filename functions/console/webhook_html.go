package console

import (
	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/shared/domain/webhook"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (d webhookData) content(l *layout) Node {
	may := l.May("webhooks:write")
	act := func(verb, label string) Node { return l.post(webhookPath(d.ID)+"/"+verb, Button(Text(label))) }
	return Group{
		head(bdi(short(120, d.URL)), d.Look.badge(), space(), If(may, actions(
			act("test", "Send a test"), If(d.Paused || d.DisabledReason != "", act("resume", "Resume")), If(!d.Paused, act("pause", "Pause")),
		))),
		If(d.Description != "", P(bdi(short(400, d.Description)))),
		If(d.DisabledReason != "", P(
			Class("warn"), Text("Sortie disabled the webhook "), l.time(d.DisabledAt), Text(": "), bdi(visible(d.DisabledReason)),
		)),
		Div(Class("cards"), d.health(l), d.settings(l), d.secrets(l)),
		If(may, d.again(l)), d.deliveries(l), If(may, d.deletion(l)),
	}
}

func (d webhookData) health(l *layout) Node {
	p := d.Progress
	return card("health", "Health", Dl(
		term("Last success", l.time(p.LastSuccessAt)), term("Last failure", l.time(p.LastFailureAt)),
		term("Failures in a row", text(p.Failures)), term("Pending", text(p.Pending)),
		If(!p.HeldUntil.IsZero(), term("Next attempt", l.time(p.HeldUntil))),
		term("Read up to", text("position ", p.Position)),
		Map(p.Missed, func(r contract.PositionRange) Node { return term("Missed", text("positions ", r.From, " to ", r.To)) }),
		Map(p.Redeliveries, func(r contract.Redelivery) Node {
			return term("Sent again", text(r.Sent, " of ", r.Events, " events, positions ", r.From, " to ", r.To))
		}),
	))
}

func (d webhookData) settings(l *layout) Node {
	rate := "no limit"
	if d.RateLimit != 0 {
		rate = joined(d.RateLimit, " attempts a second")
	}
	return card("settings", "Settings", Dl(
		term("Id", code(d.ID)), term("Events", d.types(60)),
		If(d.JobID != "", term("Job", bdi(short(90, d.JobID)))),
		If(d.TaskID != "", term("Run", l.a(runPath(d.TaskID), bdi(short(90, d.TaskID))))),
		term("Order", Text(choose(d.Ordered, "in the order of each run", "as they come"))),
		term("Rate limit", Text(rate)),
		term("Created", l.time(d.CreatedAt), If(d.CreatedBy != "", Group{Text(" by "), bdi(short(60, d.CreatedBy))})),
	))
}

func (d webhookData) secrets(l *layout) Node {
	return card(
		"secrets", "Secrets",
		Dl(Map(d.Secrets, func(s contract.WebhookSecretExpiry) Node {
			until := Text("signs")
			if !s.ExpiresAt.IsZero() {
				until = Group{Text("signs until "), l.time(s.ExpiresAt)}
			}
			return Group{Dt(Text("Created "), l.time(s.CreatedAt)), Dd(until)}
		})),
		If(l.May("webhooks:write"), l.post(
			webhookPath(d.ID)+"/rotate", Class("stack"), hiddenField("tag", d.Tag),
			checkbox("revoke", "Revoke the older secrets now"), P(Button(Text("New secret"))),
		)),
	)
}

// again returns the forms that send events again.
func (d webhookData) again(l *layout) Node {
	spans := Map(d.Spans, func(s span) Node { return Option(Value(s.Value), If(s.Value == "24h", Selected()), Text(s.Text)) })
	return card(
		"again", "Send again",
		l.get(
			webhookPath(d.ID)+"/recover", Class("filters"),
			Label(Text("What failed, and was missed, in the "), Select(Name("since"), spans)), Button(Text("Preview")),
		),
		If(l.May("orch:backfill"), Details(
			Summary(Text("Replay a part of the stream, delivered events too")),
			l.post(
				webhookPath(d.ID)+"/replay", Class("filters"), hiddenField("key", d.Key),
				field("From a time or a cursor", Name("from"), Required(), Placeholder("2026-11-21T09:00:00Z")),
				field("To", Name("to"), Placeholder("latest")), field("Types", Name("types"), Placeholder("job.failed")),
				Button(Text("Replay")),
			),
		)),
	)
}

// deliveries returns the deliveries of the page, with links to those in other states.
func (d webhookData) deliveries(l *layout) Node {
	preset := func(query, label string, current bool) Node {
		return Li(l.a(webhookPath(d.ID)+query, If(current, Aria("current", "true")), Text(label)))
	}
	states := Ul(
		Class("presets"), Aria("label", "States"), preset("", "All", d.State == ""),
		Map(d.States, func(s webhook.State) Node {
			return preset("?state="+queryValue(string(s)), string(s), string(s) == d.State)
		}),
	)
	if len(d.Deliveries) == 0 {
		message := choose(d.State != "", "No delivery is in this state.", "Nothing was sent yet. A test shows whether the address answers:")
		return section("deliveries", "Deliveries", states, empty(message, "sortie webhooks test "+d.ID))
	}
	action := Th(Scope("col"), Span(Class("off"), Text("Action")))
	return section(
		"deliveries", "Deliveries", states,
		listing(
			headings(thNum("Position"), th("State", "Event", "Last answer"), thNum("Took"), th("Attempts"), If(l.May("webhooks:write"), action)),
			Map(d.Deliveries, func(each deliveryRow) Node { return each.row(l, d.ID) }),
		),
		quiet(Text("The body of a request is the event at its position. Its headers have the signature of the webhook's secret.")),
		l.pager(d.Pager),
	)
}

// row returns a row of the deliveries of a webhook.
func (d deliveryRow) row(l *layout, webhook string) Node {
	last, took := none("–"), Node(nil)
	if a := d.Last; a != nil {
		last = Group{If(a.Status != 0, Group{B(text(a.Status)), space()}), bdi(short(100, a.Error)), sub(l.time(a.At))}
		took = text(a.LatencyMS, " ms")
	}
	tries := text(d.Tries)
	if len(d.Attempts) > 0 {
		tries = Details(Summary(text(d.Tries)), Ol(Class("attempts"), Map(d.Attempts, func(a contract.WebhookAttempt) Node { return attemptItem(l, a) })))
	}
	return Tr(
		ID(joined("delivery-", d.Position)),
		num(l.a(joined("events/", d.Position), TitleAttr("The event, which is the body of the request"), text(d.Position))),
		Td(d.Look.badge(), If(!d.NextAttemptAt.IsZero(), sub(Text("next "), l.time(d.NextAttemptAt)))),
		wide(code(short(60, d.EventType)), If(d.TaskID != "", sub(l.a(runPath(d.TaskID), bdi(short(60, d.TaskID)))))),
		wide(last), num(took), wide(tries),
		If(l.May("webhooks:write"), Td(l.post(webhookPath(webhook)+"/redeliver", hiddenField("position", joined(d.Position)), Button(Text("Redeliver"))))),
	)
}

func attemptItem(l *layout, a contract.WebhookAttempt) Node {
	return Li(
		l.time(a.At), Text(": "), statusOf(a), text(" after ", a.LatencyMS, " ms"),
		If(a.Error != "", Group{space(), bdi(short(300, a.Error))}), If(a.Response != "", Pre(Text(visible(a.Response)))),
	)
}

// statusOf returns the status of the response to an attempt.
func statusOf(a contract.WebhookAttempt) Node {
	if a.Status == 0 {
		return Text("no response")
	}
	return text(a.Status)
}

func (d webhookData) deletion(l *layout) Node {
	return Details(Class("card"), Summary(Text("Delete the webhook")), l.post(
		webhookPath(d.ID)+"/delete", Class("filters"), field("Type its id", Name("confirm"), Required(), AutoComplete("off"), Placeholder(d.ID)),
		Button(Class("danger"), Text("Delete with its log")),
	))
}

// toWebhook returns the link back to a webhook.
func toWebhook(l *layout, id string) Node { return P(l.a(webhookPath(id), Text("To the webhook"))) }

func (d attemptData) content(l *layout) Node {
	a := d.Attempt
	result := badge("bad", "cross", "Not accepted")
	if d.Good {
		result = badge("good", "check", "Accepted")
	}
	return Group{
		head(Text("Test of a webhook"), result),
		facts(fact("Status", statusOf(a)), fact("Took", text(a.LatencyMS, " ms")), fact("Sent", l.time(a.At))),
		If(a.Error != "", P(Class("warn"), bdi(visible(a.Error)))),
		If(a.Response != "", Group{H2(Text("Response")), Pre(Text(visible(a.Response)))}),
		toWebhook(l, d.ID),
	}
}

func (d replayData) content(l *layout) Node {
	r := d.Replay
	return Group{
		done(joined(r.Events, " events are sent again.")),
		H1(Text("Replay")),
		facts(
			fact("Id", code(short(90, r.ID))), fact("After", code(short(60, r.From))), fact("Up to", code(short(60, r.To))),
			fact("Sent so far", text(r.Sent, " of ", r.Events)),
		),
		If(r.Next != "", P(Text("The range has further events. Replay them from the cursor "), code(short(60, r.Next)), Text("."))),
		toWebhook(l, d.ID),
	}
}

func (d recoverData) content(l *layout) Node {
	var missed Node
	if len(d.Missed) > 0 {
		missed = Group{
			Text(" It also missed events while it was paused or disabled, at "),
			commas(d.Missed, func(r contract.PositionRange) Node { return text("positions ", r.From, " to ", r.To) }),
			Text("; those since that time are sent, too."),
		}
	}
	example := func(each deliveryRow) Node {
		return Tr(
			num(l.a(joined("events/", each.Position), text(each.Position))), Td(code(short(60, each.EventType))),
			wide(with(each.Last, func(a *contract.WebhookAttempt) Node {
				return Group{If(a.Status != 0, text(a.Status, " ")), bdi(short(120, a.Error))}
			})),
		)
	}
	return Group{
		H1(Text("Send again what failed")),
		P(
			Text("Since "), B(l.time(d.At)), Text(", "), B(text(d.Count, choose(d.More, " or more", ""))),
			Text(" deliveries of this webhook have failed."), missed, Text(" Events that were delivered are not sent again."),
		),
		If(len(d.Examples) > 0, Div(Class("table"), Table(
			Caption(Text("The newest of them")), headings(thNum("Position"), th("Event", "Last answer")), TBody(Map(d.Examples, example)),
		))),
		Div(
			Class("stack"),
			If(d.Count > 0 || len(d.Missed) > 0, l.post(
				webhookPath(d.ID)+"/redeliver", hiddenField("since", d.Since), Button(Class("primary"), Text("Send them again")),
			)),
			toWebhook(l, d.ID),
		),
	}
}
