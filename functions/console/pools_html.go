package console

import (
	"cmp"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/ui"
)

func (d poolsData) content(l *ui.Layout) Node {
	return Group{
		ui.Top(Text("Pools")),
		Div(Class("table rows"), Table(
			ui.Headings(ui.Columns("Pool", "State", "Runs on", "Slots"), ui.HiddenColumn("Use"), ui.NumberColumns("Queued", "Queue limit"), ui.Columns("Changed")),
			TBody(Map(d.Pools, func(p poolRow) Node { return p.row(l) })),
		)),
	}
}

// row returns a row of the list of pools.
func (p poolRow) row(l *ui.Layout) Node {
	runsOn := Text(cmp.Or(p.Runner, "the deployment's runner"))
	if p.Engine != nil {
		runsOn = Group{Text(ui.Visible(p.Engine.Kind) + " "), ui.SubLine(Text(ui.Visible(p.Engine.Model)))}
	}
	return Tr(
		Data("pool", p.ID), ID("pool-"+p.ID), ui.Flag("data-part"),
		ui.Wide(l.A(ui.PoolPath(p.ID), Text(p.ID))), Td(p.State.Badge()), Td(runsOn), ui.Labelled("slots", Text(p.Slots.Text)),
		ui.Extra(If(p.Limit != 0, p.Slots.picture())), ui.Labelled("queued", ui.Texts(p.Queued)), Td(Class("num extra"), limit(p.QueueLimit)),
		ui.Extra(l.Time(p.UpdatedAt), If(p.UpdatedBy != "", ui.SubLine(Text("by "+ui.Visible(p.UpdatedBy))))),
	)
}

// picture returns the used part of a limit.
func (m meter) picture() Node {
	return SVG(
		Class(ui.Joined("meter ", m.Class)), ui.Attribute("viewBox", "0 0 100 8"), Width("100"), Height("8"), ui.Attribute("preserveAspectRatio", "none"), Aria("hidden", "true"),
		El("rect", Class("whole"), Width("100"), Height("8"), ui.Attribute("rx", "2")), El("rect", ui.Attribute("width", m.Part), Height("8"), ui.Attribute("rx", "2")),
	)
}
