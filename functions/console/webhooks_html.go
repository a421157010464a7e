package console

import (
	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"
)

func (d webhooksData) content(l *layout) Node {
	list := empty("There are no webhooks. One sends the events of your runs to an address of yours:", "sortie webhooks create https://hooks.example.org/sortie --type job.failed")
	if len(d.Webhooks) > 0 {
		list = Group{
			listing(
				headings(th("Status", "Address", "Events"), thNum("Pending", "Failures in a row"), th("Last success", "Last failure")),
				Map(d.Webhooks, func(w webhookRow) Node { return w.row(l) }),
			),
			l.pager(d.Pager),
		}
	}
	return Group{head(Text("Webhooks")), list, If(l.May("webhooks:write"), d.form(l))}
}

// row returns a row of the list of webhooks.
func (w webhookRow) row(l *layout) Node {
	if w.Gone {
		return nil
	}
	return Tr(
		ID("webhook-"+w.ID), Td(w.Look.badge()),
		wide(
			l.a(webhookPath(w.ID), bdi(short(90, w.URL))),
			sub(If(w.Description != "", Group{bdi(short(90, w.Description)), Text(" · ")}), Text(w.ID)),
		),
		Td(
			Class("wide extra"), w.types(40),
			If(w.JobID != "", Group{space(), sub(Text("of job "), bdi(short(60, w.JobID)))}),
			If(w.TaskID != "", Group{space(), sub(Text("of run "), bdi(short(60, w.TaskID)))}),
		),
		labelled("pending", text(w.Progress.Pending)), labelled("failures", text(w.Progress.Failures)),
		Td(Data("label", "success"), l.time(w.Progress.LastSuccessAt)), Td(Data("label", "failure"), l.time(w.Progress.LastFailureAt)),
	)
}

// types returns the event types that the webhook receives, each with at most n characters.
func (w webhookRow) types(n int) Node {
	if len(w.EventTypes) == 0 {
		return Text("all")
	}
	return commas(w.EventTypes, func(name string) Node { return code(short(n, name)) })
}

// form returns the form for a new webhook.
func (d webhooksData) form(l *layout) Node {
	return Section(Aria("labelledby", "h-new"), Details(
		Class("card"), If(len(d.Webhooks) == 0, flag("open")), Summary(ID("h-new"), Text("Add a webhook")),
		l.post(
			"webhooks", Class("stack"), hiddenField("key", d.Key),
			field("Address", Name("url"), Type("url"), Required(), Placeholder("https://hooks.example.org/sortie")),
			field("Event types, such as job.failed, schedule.*; empty for all", Name("eventTypes")),
			field("Only events of the job", Name("jobId")), field("Description", Name("description")),
			checkbox("ordered", "Send the events of a run in order"),
			P(Button(Class("primary"), Text("Add the webhook"))),
		),
	))
}

// checkbox returns a field of a form that is 1 or absent.
func checkbox(name, label string) Node {
	return Label(Class("check"), Input(Type("checkbox"), Name(name), Value("1")), Text(" "+label))
}

func (d secretData) content(l *layout) Node {
	w := d.Webhook
	secret := P(Text("The secret was shown before, and cannot be shown again. Create a new one on the page of the webhook."))
	if w.Secret != "" {
		secret = section(
			"secret", "Copy it now", Class("card wait"),
			P(Text("This page is the only one that shows the secret. Receivers verify the signatures of requests with it.")),
			P(Span(Class("command plain"), code(w.Secret), copyButton())),
		)
	}
	return Group{done(d.Done), H1(Text("Secret of "), bdi(short(90, w.URL))), secret, P(l.a(webhookPath(w.ID), Text("To the webhook "+w.ID)))}
}
