package console

import (
	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"
)

func (d signInData) content(l *layout) Node {
	advice := P(
		Text("An administrator creates tokens with "), code("sortie tokens add"), Text(". With a token in "), code("SORTIE_TOKEN"),
		Text(", a command opens the console:"),
	)
	if d.Local {
		advice = P(Text("On this computer, a command opens the console without a token to copy:"))
	}
	return Group{
		H1(icon("sortie"), Text("Sign in to Sortie")),
		If(d.Problem != "", warning(Text(d.Problem))),
		l.post(
			"sign-in", Class("stack"), hiddenField("next", d.Next),
			field("Client token", Type("password"), Name("token"), AutoComplete("current-password"), Required(), AutoFocus()),
			Button(Class("primary"), Text("Sign in")),
		),
		advice, copied("sortie open"),
	}
}

func (d ticketData) content(l *layout) Node {
	return Group{
		H1(icon("sortie"), Text("Sign in to Sortie")),
		P(
			Text("This link signs this browser in as "), B(Text(d.Name)), Text(" ("), code(d.Subject), Text("), tenant "), B(Text(d.Tenant)),
			Text(". It works once, and expires "), l.time(d.Until), Text("."),
		),
		l.post("ticket", Class("stack"), hiddenField("ticket", d.Ticket), Button(Class("primary"), AutoFocus(), Text("Sign in as "+d.Name))),
		quiet(Text("If you did not ask for this link, close the page.")),
	}
}

// usedTicket is the page for a link that does not sign in.
func usedTicket(l *layout) Node {
	return Group{
		H1(Text("This link was used, or has expired")),
		P(Text("A link signs in one browser, once. Get another one:")),
		copied("sortie open"),
		P(l.a("", Text("To the console"))),
	}
}

func (d problemData) content(l *layout) Node {
	return Group{
		H1(Text(l.Title)),
		warning(If(d.Field != "", Group{code(visible(d.Field)), Text(": ")}), Text(visible(d.Detail))),
		quiet(text(d.Status, " "), code(d.Code), If(d.CorrelationID != "", Group{Text(" · correlation id "), code(visible(d.CorrelationID))})),
		P(l.a("", Text("To the console"))),
	}
}

func (d searchData) content(l *layout) Node {
	jobs := "runs?jobId="
	for _, item := range l.Nav {
		if item.Path == "jobs" {
			jobs = "jobs/"
		}
	}
	return Group{
		H1(Text("Search")),
		l.get("search", Class("filters"), Role("search"), Aria("label", "Search"), field("Id or name", Name("q"), Value(visible(d.Query)), AutoFocus()), Button(Text("Search"))),
		If(len(d.Results) > 0, listing(headings(th("Kind", "Name", "Details")), Map(d.Results, func(found searchResult) Node {
			return Tr(
				Td(Text(found.Kind)), wide(l.a(choose(found.Kind == "Job", jobs, "")+found.Path, bdi(short(120, found.Name)))),
				wide(bdi(short(200, found.Details))),
			)
		}))),
		If(len(d.Results) == 0 && d.Query != "", empty("Nothing has this id or name. Runs, events and webhooks are found by their whole id; jobs and webhooks also by a part of their name.", "")),
		If(d.Cut, quiet(Text("There may be more jobs and webhooks with this text."))),
	}
}
