package console

import (
	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/shared/domain/access"
)

func (d aboutData) content(l *layout) Node {
	return Group{
		head(Text("About")),
		facts(
			fact("Version", Text(short(60, d.Version))), If(d.API != "", fact("API", Text(short(60, d.API)))),
			fact("Address of the API", code(short(120, d.URL))),
		),
		section("parts", "Health", listing(headings(th("State", "Part", "Details")), Map(d.Parts, func(p partRow) Node {
			return Tr(Td(p.Look.badge()), wide(bdi(short(80, p.Name))), wide(bdi(short(300, p.Details))))
		}))),
		d.limits(),
		If(len(d.Budgets) > 0, section("quotas", "Quotas of inference", Div(Class("cards"), Map(d.Budgets, l.budget)))),
		Div(
			Class("cards"),
			card("token", "Your token", Dl(
				term("Name", bdi(short(80, l.Reader.Name))),
				term("Tenant, project", bdi(short(60, l.Reader.Tenant)), Text(", "), bdi(short(60, l.Reader.Project))),
				term("Scopes", commas(d.Scopes, func(s access.Scope) Node { return code(string(s)) })),
				term("Signed in until", l.time(l.Reader.Until)),
			)),
			card("console", "Limits of the console", Dl(Map(d.Limits, func(limit [2]string) Node { return term(limit[0], Text(limit[1])) }))),
			card("links", "API", Ul(Class("plain"), Li(l.a(pathDocs, Text("Documents"))), Map(d.Links, func(link linkRow) Node {
				return If(link.Scope == "" || l.May(link.Scope), Li(l.a("json"+link.Path, Text(link.Label))))
			}))),
		),
		If(l.May("admin"), section("settings", "Settings that are set", d.settings())),
	}
}

// limits returns the limits of the pools.
func (d aboutData) limits() Node {
	if len(d.Pools) == 0 {
		return nil
	}
	runsOn := func(p engineRow) Node {
		switch {
		case p.Engine != nil:
			return Text("engine " + p.Engine.Kind)
		case p.Runner != "":
			return Text(p.Runner)
		}
		return Text("runner of the deployment")
	}
	return section("limits", "Limits of the pools", listing(
		headings(th("Pool", "Runs on"), thNum("Slots used", "Limit", "Queued", "Limit of the queue")),
		Map(d.Pools, func(p engineRow) Node {
			return Tr(
				wide(bdi(short(80, p.ID))), wide(runsOn(p)), labelled("used", text(p.Held)), labelled("limit", limit(p.Limit)),
				labelled("queued", text(p.Queued)), labelled("queue limit", limit(p.QueueLimit)),
			)
		}),
	))
}

// limit returns a limit for which 0 means none.
func limit(n int) Node {
	if n == 0 {
		return Text("no limit")
	}
	return text(n)
}

func (d aboutData) settings() Node {
	if len(d.Settings) == 0 {
		return quiet(Text("All settings have their defaults, or the deployment does not list them."))
	}
	return scrolled(headings(th("Name", "Value")), Map(d.Settings, func(s Setting) Node {
		return Tr(Td(code(short(80, s.Name))), wide(code(short(400, s.Value))))
	}))
}
