package console

import (
	"cmp"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"
)

func (d poolsData) content(l *layout) Node {
	return Group{
		head(Text("Pools")),
		Div(Class("table rows"), Table(
			headings(th("Pool", "State", "Runs on", "Slots"), thHidden("Use"), thNum("Queued", "Queue limit"), th("Changed")),
			TBody(Map(d.Pools, func(p poolRow) Node { return p.row(l) })),
		)),
	}
}

// row returns a row of the list of pools.
func (p poolRow) row(l *layout) Node {
	runsOn := Text(cmp.Or(p.Runner, "the deployment's runner"))
	if p.Engine != nil {
		runsOn = Group{Text(visible(p.Engine.Kind) + " "), sub(Text(visible(p.Engine.Model)))}
	}
	return Tr(
		Data("pool", p.ID), ID("pool-"+p.ID), flag("data-part"),
		wide(l.a(poolPath(p.ID), Text(p.ID))), Td(p.State.badge()), Td(runsOn), labelled("slots", Text(p.Slots.Text)),
		extra(If(p.Limit != 0, p.Slots.picture())), labelled("queued", text(p.Queued)), Td(Class("num extra"), limit(p.QueueLimit)),
		extra(l.time(p.UpdatedAt), If(p.UpdatedBy != "", sub(Text("by "+visible(p.UpdatedBy))))),
	)
}
