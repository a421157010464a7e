package webhooks

import (
	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/ui"
)

func (d webhooksData) content(l *ui.Layout) Node {
	list := ui.Empty("There are no webhooks. One sends the events of your runs to an address of yours:", "sortie webhooks create https://hooks.example.org/sortie --type job.failed")
	if len(d.Webhooks) > 0 {
		list = Group{
			ui.Listing(
				ui.Headings(ui.Columns("Status", "Address", "Events"), ui.NumberColumns("Pending", "Failures in a row"), ui.Columns("Last success", "Last failure")),
				Map(d.Webhooks, func(w Row) Node { return w.row(l) }),
			),
			l.Pager(d.Pager),
		}
	}
	return Group{ui.Top(Text("Webhooks")), list, If(l.May("webhooks:write"), d.form(l))}
}

// row returns a row of the list of webhooks.
func (w Row) row(l *ui.Layout) Node {
	if w.Gone {
		return nil
	}
	return Tr(
		ID("webhook-"+w.ID), Td(w.Look.Badge()),
		ui.Wide(
			l.A(ui.WebhookPath(w.ID), ui.Bdi(ui.Short(90, w.URL))),
			ui.SubLine(If(w.Description != "", Group{ui.Bdi(ui.Short(90, w.Description)), Text(" · ")}), Text(w.ID)),
		),
		Td(
			Class("wide extra"), w.types(40),
			If(w.JobID != "", Group{ui.Space(), ui.SubLine(Text("of job "), ui.Bdi(ui.Short(60, w.JobID)))}),
			If(w.TaskID != "", Group{ui.Space(), ui.SubLine(Text("of run "), ui.Bdi(ui.Short(60, w.TaskID)))}),
		),
		ui.Labelled("pending", ui.Texts(w.Progress.Pending)), ui.Labelled("failures", ui.Texts(w.Progress.Failures)),
		Td(Data("label", "success"), l.Time(w.Progress.LastSuccessAt)), Td(Data("label", "failure"), l.Time(w.Progress.LastFailureAt)),
	)
}

// types returns the event types that the webhook receives, each with at most n characters.
func (w Row) types(n int) Node {
	if len(w.EventTypes) == 0 {
		return Text("all")
	}
	return ui.Commas(w.EventTypes, func(name string) Node { return ui.Mono(ui.Short(n, name)) })
}

// form returns the form for a new webhook.
func (d webhooksData) form(l *ui.Layout) Node {
	return Section(Aria("labelledby", "h-new"), Details(
		Class("card"), If(len(d.Webhooks) == 0, ui.Flag("open")), Summary(ID("h-new"), Text("Add a webhook")),
		l.Post(
			"webhooks", Class("stack"), ui.HiddenField("key", d.Key),
			ui.Field("Address", Name("url"), Type("url"), Required(), Placeholder("https://hooks.example.org/sortie")),
			ui.Field("Event types, such as job.failed, schedule.*; empty for all", Name("eventTypes")),
			ui.Field("Only events of the job", Name("jobId")), ui.Field("Description", Name("description")),
			checkbox("ordered", "Send the events of a run in order"),
			P(Button(Class("primary"), Text("Add the webhook"))),
		),
	))
}

// checkbox returns a field of a form that is 1 or absent.
func checkbox(name, label string) Node {
	return Label(Class("check"), Input(Type("checkbox"), Name(name), Value("1")), Text(" "+label))
}

func (d secretData) content(l *ui.Layout) Node {
	w := d.Webhook
	secret := P(Text("The secret was shown before, and cannot be shown again. Create a new one on the page of the webhook."))
	if w.Secret != "" {
		secret = ui.Block(
			"secret", "Copy it now", Class("card wait"),
			P(Text("This page is the only one that shows the secret. Receivers verify the signatures of requests with it.")),
			P(Span(Class("command plain"), ui.Mono(w.Secret), ui.CopyButton())),
		)
	}
	return Group{ui.Done(d.Done), H1(Text("Secret of "), ui.Bdi(ui.Short(90, w.URL))), secret, P(l.A(ui.WebhookPath(w.ID), Text("To the webhook "+w.ID)))}
}
