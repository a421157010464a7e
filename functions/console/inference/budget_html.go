package inference

import (
	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/ui"
)

// BudgetCard returns a budget and the form for its limits.
func BudgetCard(l *ui.Layout, b BudgetView) Node {
	return Div(
		Class("card budget"), H3(ui.Bdi(ui.Short(60, b.Scope))),
		ui.Grid(ui.Headings(ui.Columns("Part"), ui.NumberColumns("Spent", "Held", "Limit"), ui.Columns("Used")), Map(b.Parts, func(p budgetPart) Node {
			return Tr(
				Td(Text(p.Name)), ui.Num(Text(p.Spent)), ui.Num(Text(p.Held)), ui.Num(Text(ui.Choose(p.Limited, p.Limit, "no limit"))),
				Td(If(p.Limited, Group{
					Meter(Min("0"), Max("100"), ui.Attribute("high", "80"), ui.Attribute("value", p.Share), ui.Texts(p.Share, " %")), ui.Space(),
					Span(Class("quiet"), ui.Texts(p.Share, " %")),
				})),
			)
		})),
		If(l.May("orch:quota"), Details(
			Summary(Text("Change the limits")),
			l.Post(
				"inference/budget", Class("filters"), ui.HiddenField("scope", b.Scope), Map(b.Parts, func(p budgetPart) Node {
					return ui.Field(p.Field, Name(p.Field), ui.Attribute("inputmode", "numeric"), Value(p.Value), Placeholder("no limit"))
				}),
				Button(Text("Save")),
			),
		)),
	)
}
