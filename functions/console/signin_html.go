package console

import (
	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/ui"
)

func (d signInData) content(l *ui.Layout) Node {
	advice := P(
		Text("An administrator creates tokens with "), ui.Mono("sortie tokens add"), Text(". With a token in "), ui.Mono("SORTIE_TOKEN"),
		Text(", a command opens the console:"),
	)
	if d.Local {
		advice = P(Text("On this computer, a command opens the console without a token to copy:"))
	}
	return Group{
		H1(ui.Icon("sortie"), Text("Sign in to Sortie")),
		If(d.Problem != "", ui.Warning(Text(d.Problem))),
		l.Post(
			"sign-in", Class("stack"), ui.HiddenField("next", d.Next),
			ui.Field("Client token", Type("password"), Name("token"), AutoComplete("current-password"), Required(), AutoFocus()),
			Button(Class("primary"), Text("Sign in")),
		),
		advice, ui.Copied("sortie open"),
	}
}

func (d ticketData) content(l *ui.Layout) Node {
	return Group{
		H1(ui.Icon("sortie"), Text("Sign in to Sortie")),
		P(
			Text("This link signs this browser in as "), B(Text(d.Name)), Text(" ("), ui.Mono(d.Subject), Text("), tenant "), B(Text(d.Tenant)),
			Text(". It works once, and expires "), l.Time(d.Until), Text("."),
		),
		l.Post("ticket", Class("stack"), ui.HiddenField("ticket", d.Ticket), Button(Class("primary"), AutoFocus(), Text("Sign in as "+d.Name))),
		ui.Quiet(Text("If you did not ask for this link, close the page.")),
	}
}

// usedTicket is the page for a link that does not sign in.
func usedTicket(l *ui.Layout) Node {
	return Group{
		H1(Text("This link was used, or has expired")),
		P(Text("A link signs in one browser, once. Get another one:")),
		ui.Copied("sortie open"),
		P(l.A("", Text("To the console"))),
	}
}

func (d problemData) content(l *ui.Layout) Node {
	return Group{
		H1(Text(l.Title)),
		ui.Warning(If(d.Field != "", Group{ui.Mono(ui.Visible(d.Field)), Text(": ")}), Text(ui.Visible(d.Detail))),
		ui.Quiet(ui.Texts(d.Status, " "), ui.Mono(d.Code), If(d.CorrelationID != "", Group{Text(" · correlation id "), ui.Mono(ui.Visible(d.CorrelationID))})),
		P(l.A("", Text("To the console"))),
	}
}

func (d searchData) content(l *ui.Layout) Node {
	jobs := "runs?jobId="
	for _, item := range l.Nav {
		if item.Path == "jobs" {
			jobs = "jobs/"
		}
	}
	return Group{
		H1(Text("Search")),
		l.Get("search", Class("filters"), Role("search"), Aria("label", "Search"), ui.Field("Id or name", Name("q"), Value(ui.Visible(d.Query)), AutoFocus()), Button(Text("Search"))),
		If(len(d.Results) > 0, ui.Listing(ui.Headings(ui.Columns("Kind", "Name", "Details")), Map(d.Results, func(found searchResult) Node {
			return Tr(
				Td(Text(found.Kind)), ui.Wide(l.A(ui.Choose(found.Kind == "Job", jobs, "")+found.Path, ui.Bdi(ui.Short(120, found.Name)))),
				ui.Wide(ui.Bdi(ui.Short(200, found.Details))),
			)
		}))),
		If(len(d.Results) == 0 && d.Query != "", ui.Empty("Nothing has this id or name. Runs, events and webhooks are found by their whole id; jobs and webhooks also by a part of their name.", "")),
		If(d.Cut, ui.Quiet(Text("There may be more jobs and webhooks with this text."))),
	}
}
