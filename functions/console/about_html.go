package console

import (
	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/inference"
	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/access"
)

func (d aboutData) content(l *ui.Layout) Node {
	return Group{
		ui.Top(Text("About")),
		ui.Facts(
			ui.Fact("Version", Text(ui.Short(60, d.Version))), If(d.API != "", ui.Fact("API", Text(ui.Short(60, d.API)))),
			ui.Fact("Address of the API", ui.Mono(ui.Short(120, d.URL))),
		),
		ui.Block("parts", "Health", ui.Listing(ui.Headings(ui.Columns("State", "Part", "Details")), Map(d.Parts, func(p partRow) Node {
			return Tr(Td(p.Look.Badge()), ui.Wide(ui.Bdi(ui.Short(80, p.Name))), ui.Wide(ui.Bdi(ui.Short(300, p.Details))))
		}))),
		d.limits(),
		If(len(d.Budgets) > 0, ui.Block("quotas", "Quotas of inference", Div(Class("cards"), Map(d.Budgets, func(b inference.BudgetView) Node { return inference.BudgetCard(l, b) })))),
		Div(
			Class("cards"),
			ui.Card("token", "Your token", Dl(
				ui.Term("Name", ui.Bdi(ui.Short(80, l.Reader.Name))),
				ui.Term("Tenant, project", ui.Bdi(ui.Short(60, l.Reader.Tenant)), Text(", "), ui.Bdi(ui.Short(60, l.Reader.Project))),
				ui.Term("Scopes", ui.Commas(d.Scopes, func(s access.Scope) Node { return ui.Mono(string(s)) })),
				ui.Term("Signed in until", l.Time(l.Reader.Until)),
			)),
			ui.Card("console", "Limits of the console", Dl(Map(d.Limits, func(limit [2]string) Node { return ui.Term(limit[0], Text(limit[1])) }))),
			ui.Card("links", "API", Ul(Class("plain"), Li(l.A(pathDocs, Text("Documents"))), Map(d.Links, func(link linkRow) Node {
				return If(link.Scope == "" || l.May(link.Scope), Li(l.A("json"+link.Path, Text(link.Label))))
			}))),
		),
		If(l.May("admin"), ui.Block("settings", "Settings that are set", d.settings())),
	}
}

// limits returns the limits of the pools.
func (d aboutData) limits() Node {
	if len(d.Pools) == 0 {
		return nil
	}
	runsOn := func(p inference.EngineRow) Node {
		switch {
		case p.Engine != nil:
			return Text("engine " + p.Engine.Kind)
		case p.Runner != "":
			return Text(p.Runner)
		}
		return Text("runner of the deployment")
	}
	return ui.Block("limits", "Limits of the pools", ui.Listing(
		ui.Headings(ui.Columns("Pool", "Runs on"), ui.NumberColumns("Slots used", "Limit", "Queued", "Limit of the queue")),
		Map(d.Pools, func(p inference.EngineRow) Node {
			return Tr(
				ui.Wide(ui.Bdi(ui.Short(80, p.ID))), ui.Wide(runsOn(p)), ui.Labelled("used", ui.Texts(p.Held)), ui.Labelled("limit", limit(p.Limit)),
				ui.Labelled("queued", ui.Texts(p.Queued)), ui.Labelled("queue limit", limit(p.QueueLimit)),
			)
		}),
	))
}

// limit returns a limit for which 0 means none.
func limit(n int) Node {
	if n == 0 {
		return Text("no limit")
	}
	return ui.Texts(n)
}

func (d aboutData) settings() Node {
	if len(d.Settings) == 0 {
		return ui.Quiet(Text("All settings have their defaults, or the deployment does not list them."))
	}
	return ui.Scrolled(ui.Headings(ui.Columns("Name", "Value")), Map(d.Settings, func(s page.Setting) Node {
		return Tr(Td(ui.Mono(ui.Short(80, s.Name))), ui.Wide(ui.Mono(ui.Short(400, s.Value))))
	}))
}
